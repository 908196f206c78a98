#!/usr/bin/env bash
# docs-check.sh PROGRAM writes the generated documents into scratch and compares them with those under docs.
set -euo pipefail
program=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
"$program" docs --dir "$scratch"
found=0 status=0
while IFS= read -r -d '' file; do
  found=$((found + 1))
  diff -u --label "docs/$file" --label "generated $file" "docs/$file" "$scratch/$file" || status=1
done < <(cd "$scratch" && find . -type f -printf '%P\0' | sort -z)
if [[ -d docs/cli ]]; then # a page of a command that is gone
  while IFS= read -r -d '' file; do
    [[ -e "$scratch/$file" ]] || { echo "docs/$file is generated no more" >&2; status=1; }
  done < <(cd docs && find cli -type f -print0)
fi
if [[ $found -eq 0 ]]; then
  echo "docs-check: nothing was generated" >&2
  exit 1
fi
if [[ $status -ne 0 ]]; then
  echo "docs-check: run 'make docs' and commit the result" >&2
fi
exit "$status"
