#!/usr/bin/env bash
# demo.sh PROGRAM diagnoses the incident a-auth-revision-replay, checks that the exit code says "findings" (3), plans its repair and
# rehearses it with real servers on copies.
set -euo pipefail
program=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
tar -xzf testdata/incidents/a-auth-revision-replay/nodes.tar.gz -C "$scratch"
command=("$program" diagnose)
for n in 1 2 3; do
  command+=("node$n=$scratch/node$n")
done
echo "\$ ${command[*]}"
status=0
"${command[@]}" || status=$?
if [[ $status -ne 3 ]]; then
  echo "demo: exit code $status; 3 (findings) was expected of this incident" >&2
  exit 1
fi
echo
echo "demo: exit code 3 (findings), as it must be for this incident."
echo
sources=("${command[@]:2}")
echo "\$ $program repair plan ${sources[*]} -o $scratch/plan.yaml"
"$program" repair plan "${sources[@]}" -o "$scratch/plan.yaml"
echo
echo "\$ $program repair rehearse $scratch/plan.yaml"
"$program" repair rehearse "$scratch/plan.yaml"
echo
echo "demo: exit code 0, every proof of the rehearsal holds."
