#!/usr/bin/env bash
# container-check.sh DIST installs the packages of a release (DIST, from `make dist`) in clean containers, as a user would: the deb in DEB_IMAGE,
# the rpm in RPM_IMAGE. There the demo incident is diagnosed, a manual page is read, a word completed, and the package is removed. Then the
# image of the release diagnoses the incident, mounted read-only, as its own user on a read-only root. PODMAN is the command (podman, with flags
# that it needs here), RUN are more flags of `podman run`. An empty DEB_IMAGE or RPM_IMAGE leaves that part out.
set -euo pipefail
if [[ $# -ne 1 ]]; then
  echo "usage: [PODMAN=] [RUN=] [DEB_IMAGE=] [RPM_IMAGE=] container-check.sh DIST" >&2
  exit 2
fi
cd "$(dirname "${BASH_SOURCE[0]}")/.."
dist=$(realpath "$1")
read -ra podman <<<"${PODMAN:-podman}"
read -ra run <<<"${RUN:-}"
deb_image=${DEB_IMAGE-docker.io/library/debian:12}
rpm_image=${RPM_IMAGE-docker.io/library/almalinux:9}
arch=$(uname -m | sed -e s/x86_64/amd64/ -e s/aarch64/arm64/)
scratch=$(mktemp -d)
image=''
trap 'rm -rf "$scratch"; if [[ -n $image ]]; then "${podman[@]}" rmi -f "$image" >/dev/null; fi' EXIT

# one prints the one file of DIST whose name ends so.
one() {
  local found
  mapfile -t found < <(find "$dist" -name "*$1" ! -name '*lite*')
  if [[ ${#found[@]} -ne 1 ]]; then
    echo "container-check: ${#found[@]} files *$1 in $dist, 1 is needed" >&2
    exit 1
  fi
  echo "${found[0]}"
}

# inside is what is done in a container: install with $1, the rest, remove with $2.
inside=$(
  cat <<'S'
set -eu
$1 /package
etcd-medic version
tar -xzf /usr/share/etcd-medic/demo.tar.gz -C /tmp
status=0
etcd-medic diagnose /tmp/node1 /tmp/node2 /tmp/node3 >/tmp/diagnosis || status=$?
grep 'auth-revision-replay; keep node3' /tmp/diagnosis
test "$status" -eq 3
MANPAGER=cat man etcd-medic | grep '^ *etcd-medic - '
bash -c '. /usr/share/bash-completion/bash_completion
  . /usr/share/bash-completion/completions/etcd-medic
  COMP_WORDS=(etcd-medic dia) COMP_CWORD=1 COMP_LINE="etcd-medic dia" COMP_POINT=14
  __start_etcd-medic 2>/dev/null
  echo "completion of dia: ${COMPREPLY[0]}"
  case ${COMPREPLY[0]} in diagnose*) ;; *) exit 1 ;; esac'
$2 etcd-medic
test ! -e /usr/bin/etcd-medic
S
)

# installed runs it: installed NAME IMAGE PACKAGE PREPARE INSTALL REMOVE.
installed() {
  echo "container-check: $1 in $2"
  "${podman[@]}" run --rm "${run[@]}" -v "$3:/package:ro" "$2" sh -c "$4
$inside" sh "$5" "$6"
}

if [[ -n $deb_image ]]; then
  installed deb "$deb_image" "$(one "_linux_$arch.deb")" \
    'command -v man >/dev/null || { apt-get update -qq && apt-get install -y -qq man-db bash-completion; }' 'dpkg -i' 'dpkg -r'
fi
if [[ -n $rpm_image ]]; then
  installed rpm "$rpm_image" "$(one "_linux_$arch.rpm")" \
    'command -v man >/dev/null || dnf install -y -q man-db bash-completion tar gzip' 'rpm -i' 'rpm -e'
fi

echo "container-check: the image"
mkdir "$scratch/demo"
tar -xzf testdata/incidents/a-auth-revision-replay/nodes.tar.gz -C "$scratch/demo"
chmod -R a+rX "$scratch/demo"
digests() { (cd "$scratch/demo" && find . -type f -print0 | sort -z | xargs -0 sha256sum); }
digests >"$scratch/before"
image=$("${podman[@]}" load -q -i "$(one _oci.tar)" | sed -n 's/^Loaded image: *//p' | head -1)
status=0
"${podman[@]}" run --rm "${run[@]}" --read-only -v "$scratch/demo:/evidence:ro" "$image" \
  diagnose /evidence/node1 /evidence/node2 /evidence/node3 >"$scratch/diagnosis" || status=$?
grep 'auth-revision-replay; keep node3' "$scratch/diagnosis"
user=$("${podman[@]}" image inspect --format '{{.User}}' "$image")
digests | cmp - "$scratch/before"
if [[ $status -ne 3 || $user == "" || $user == 0* || $user == root* ]]; then
  echo "container-check: the image: exit code $status, user \"$user\"" >&2
  exit 1
fi
echo "container-check: passed: deb in ${deb_image:-no image}, rpm in ${rpm_image:-no image}, image $image as user $user"
