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
if [[ " $* " == *" -lite "* ]]; then
  if "$go" version -m "$scratch/archive/etcd-medic" | grep -E 'gocloud\.dev|aws-sdk|azure-sdk|cloud\.google\.com'; then
    echo "dist-check: the lite program has drivers of object storage" >&2
    exit 1
  fi
  ("$scratch/archive/etcd-medic" verify s3://bucket/backup.db 2>&1 || true) | grep -q 'lite'
fi
dpkg-deb -x "$(find "$scratch/one" -name '*_linux_amd64.deb' | head -1)" "$scratch/deb"
"$scratch/deb/usr/bin/etcd-medic" version -w json | grep -q '"commit"'
tar -xzf "$scratch/deb/usr/share/etcd-medic/demo.tar.gz" -C "$scratch/deb/usr/share"
status=0
"$scratch/deb/usr/bin/etcd-medic" diagnose "$scratch"/deb/usr/share/node{1,2,3} >"$scratch/diagnosis" || status=$?
if [[ $status -ne 3 ]] || ! grep -q auth-revision-replay "$scratch/diagnosis"; then
  echo "dist-check: the packaged program does not name the incident (exit code $status)" >&2
  exit 1
fi
# The layers of the image are unpacked by tar(1), as what runs containers reads them: a cut layer passes Go's reader.
mkdir "$scratch/oci" "$scratch/rootfs"
tar -xf "$(find "$scratch/one" -name '*_oci.tar')" -C "$scratch/oci"
layers=0
for blob in "$scratch"/oci/blobs/sha256/*; do
  if gzip -t "$blob" 2>/dev/null; then
    tar -xzf "$blob" -C "$scratch/rootfs"
    layers=$((layers + 1))
  fi
done
if [[ $layers -eq 0 ]]; then
  echo "dist-check: the image has no layer" >&2
  exit 1
fi
cmp "$scratch/rootfs/usr/bin/etcd-medic" "$scratch/archive/etcd-medic"
echo "dist-check: two builds are equal: $(wc -l <"$scratch/one/SHA256SUMS") artefacts"
