#!/usr/bin/env bash
# dist-check.sh [FLAG...] builds a release twice, from two exported trees, and fails unless all artefacts are equal. Then the program in the
# Debian package and the one in the archive are run, and checksums, image and manifests are looked at. FLAGs go to dist (-targets, -lite).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
go=${GO:-go}
root=$PWD
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
for n in one two; do
  mkdir -p "$scratch/tmp-$n"
  TMPDIR=$scratch/tmp-$n "$go" -C .tools/dist run . -root "$root" -o "$scratch/$n" -go "$go" "$@"
done
diff "$scratch/one/SHA256SUMS" "$scratch/two/SHA256SUMS"
(cd "$scratch/one" && sha256sum --quiet -c SHA256SUMS)
archive=$(find "$scratch/one" -name '*_linux_amd64.tar.gz' | head -1)
mkdir "$scratch/archive" "$scratch/deb"
tar -xzf "$archive" -C "$scratch/archive"
"$scratch/archive/etcd-medic" version
for f in LICENSE THIRD_PARTY_NOTICES.txt man/etcd-medic-diagnose.1 completions/etcd-medic.bash; do
  test -s "$scratch/archive/$f"
done
dpkg-deb -x "$(find "$scratch/one" -name '*_linux_amd64.deb' | head -1)" "$scratch/deb"
"$scratch/deb/usr/bin/etcd-medic" version -w json | grep -q '"commit"'
tar -xzf testdata/incidents/a-auth-revision-replay/nodes.tar.gz -C "$scratch/deb/usr/share"
status=0
"$scratch/deb/usr/bin/etcd-medic" diagnose "$scratch"/deb/usr/share/node{1,2,3} >"$scratch/diagnosis" || status=$?
if [[ $status -ne 3 ]] || ! grep -q auth-revision-replay "$scratch/diagnosis"; then
  echo "dist-check: the packaged program does not name the incident (exit code $status)" >&2
  exit 1
fi
echo "dist-check: two builds are equal: $(wc -l <"$scratch/one/SHA256SUMS") artefacts"
