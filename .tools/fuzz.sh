#!/usr/bin/env bash
# fuzz.sh runs every fuzz target of the module for FUZZTIME each. No target at all is an error.
set -euo pipefail
go=${GO:-go} count=0
dirs=$(find . -name '*_test.go' -not -path './.tools/*' -not -path './testdata/*' -exec grep -l '^func Fuzz' {} + | xargs -r -n1 dirname | sort -u)
for dir in $dirs; do
  listed=$("$go" test -list '^Fuzz' "$dir")
  for target in $(grep '^Fuzz' <<<"$listed"); do
    count=$((count + 1))
    echo "== $target in $dir for ${FUZZTIME:-10s}"
    "$go" test -run '^$' -fuzz "^$target\$" -fuzztime "${FUZZTIME:-10s}" -fuzzminimizetime 1s "$dir"
  done
done
if [[ $count -eq 0 ]]; then
  echo "fuzz: no fuzz target found" >&2
  exit 1
fi
echo "fuzz: $count targets ran without a finding"
