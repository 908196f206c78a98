#!/usr/bin/env bash
# nightly.sh runs everything that is too long for each change, one part after the other, and goes on when one fails. OUT (default nightly)
# gets the log of each part and summary.md. PARTS names some of them. The exit code is 1 if any failed.
set -uo pipefail
if [ $# -gt 0 ]; then
  echo "usage: [PARTS=\"e2e soak\"] [OUT=DIR] .tools/nightly.sh" >&2
  exit 2
fi
cd "$(dirname "${BASH_SOURCE[0]}")/.."
out=${OUT:-nightly}
parts=${PARTS:-ci test-race e2e soak fuzz fuzz-cli memory memory-large browser platforms emulate dist-check mutants bench}
mkdir -p "$out"
out=$(cd "$out" && pwd)
summary=$out/summary.md
failed=0

# last prints the line of a part's log that holds its figures.
last() {
  case $1 in
    ci | test-race | e2e | browser) grep -E '[0-9]+ passed' "$2" | tail -1 ;;
    soak) grep -E 'cases|false alarms' "$2" | tail -1 ;;
    fuzz | fuzz-cli) grep -E '^fuzz' "$2" | tail -1 ;;
    mutants) grep -E '[0-9]+ of [0-9]+' "$2" | tail -1 ;;
    *) tail -1 "$2" ;;
  esac
}

# targets prints the make command of a part.
targets() {
  case $1 in
    ci) echo ci ;;
    soak) echo "soak SEEDS=${SEEDS:-1..300} OUT=$out/soak-table.txt" ;;
    fuzz) echo "fuzz FUZZTIME=${FUZZTIME:-10m} CORPUS=${CORPUS:-$out-corpus}" ;;
    fuzz-cli) echo "fuzz-cli RUNS=${RUNS:-4000} SEED=${SEED:-7}" ;;
    memory-large) echo "memory MB=${MB:-1000}" ;;
    mutants) echo "mutants N=${N:-100} SEED=${SEED:-7} PACKAGES=${PACKAGES:-./compare/...}" ;;
    test-race | e2e | memory | browser | platforms | emulate | dist-check | bench) echo "$1" ;;
    *) return 1 ;;
  esac
}

{
  echo "# Nightly run of $(git rev-parse --short=12 HEAD), $(date -u +%Y-%m-%d)"
  echo
  echo "$(nproc) cores, $(uname -sr), $(go version | cut -d' ' -f3)"
  echo
  echo "| part | outcome | minutes | figures |"
  echo "| --- | --- | --- | --- |"
} >"$summary"
for part in $parts; do
  if ! command=$(targets "$part"); then
    echo "nightly: no part $part" >&2
    exit 2
  fi
  echo "nightly: make $command"
  begun=$SECONDS outcome=passed
  read -ra words <<<"$command"
  make "${words[@]}" >"$out/$part.log" 2>&1 || { outcome=FAILED failed=1; }
  figures=$(last "$part" "$out/$part.log" | tr '|' '/')
  echo "| \`make $command\` | $outcome | $(((SECONDS - begun + 30) / 60)) | ${figures:--} |" >>"$summary"
done
cat "$summary"
exit "$failed"
