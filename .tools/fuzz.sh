#!/usr/bin/env bash
# fuzz.sh runs every fuzz target of the module for FUZZTIME each. No target at all is an error. What was found to reach new code is kept in CORPUS,
# if that is set, and each run begins with it: caches of the go command are lost. Small inputs of it belong into testdata/fuzz.
set -euo pipefail
go=${GO:-go} count=0 failed=""
cache=$("$go" env GOCACHE)/fuzz/$("$go" list -m)
if [[ -n ${CORPUS:-} && -d $CORPUS ]]; then
  mkdir -p "$cache"
  cp -r "$CORPUS/." "$cache/"
fi

# fuzz TARGET DIR. The go command sometimes calls a run failed whose time simply ran out while its workers were busy: it then
# says "context deadline exceeded", names no failing input and writes none. Only that is no finding; it is said.
fuzz() {
  local out status=0
  out=$("$go" test -run '^$' -fuzz "^$1\$" -fuzztime "${FUZZTIME:-10s}" -fuzzminimizetime 1s "$2" 2>&1) || status=$?
  echo "$out"
  if [[ $status -eq 0 ]]; then
    return 0
  fi
  if grep -q '^ *context deadline exceeded$' <<<"$out" && ! grep -qE 'Failing input|panic|_test\.go:[0-9]+' <<<"$out"; then
    echo "fuzz: $1: the time ran out while workers were busy; no finding"
    return 0
  fi
  return "$status"
}

dirs=$(find . -name '*_test.go' -not -path './.tools/*' -not -path './testdata/*' -exec grep -l '^func Fuzz' {} + | xargs -r -n1 dirname | sort -u)
for dir in $dirs; do
  listed=$("$go" test -list '^Fuzz' "$dir")
  for target in $(grep '^Fuzz' <<<"$listed"); do
    count=$((count + 1))
    echo "== $target in $dir for ${FUZZTIME:-10s}"
    fuzz "$target" "$dir" || failed="$failed $target"
  done
done
if [[ -n ${CORPUS:-} && -d $cache ]]; then
  mkdir -p "$CORPUS"
  cp -r "$cache/." "$CORPUS/"
fi
if [[ $count -eq 0 ]]; then
  echo "fuzz: no fuzz target found" >&2
  exit 1
fi
if [[ -n $failed ]]; then
  echo "fuzz: of $count targets, these have findings:$failed"
  exit 1
fi
echo "fuzz: $count targets ran without a finding"
