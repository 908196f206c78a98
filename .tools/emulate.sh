#!/usr/bin/env bash
# emulate.sh NATIVE ARM64 WINDOWS runs the programs for linux/arm64 (under qemu-user) and windows/amd64 (under wine) on every incident and shape
# of testdata. It fails unless exit code and output of each command are those of NATIVE, the program for this machine, and all inputs are
# unchanged. wine, qemu and the compiler for wine's missing library are installed from Debian's packages where they are not there.
set -euo pipefail
if [[ $# -ne 3 ]]; then
  echo "usage: emulate.sh NATIVE ARM64 WINDOWS" >&2
  exit 2
fi
cd "$(dirname "${BASH_SOURCE[0]}")/.."
native=$(realpath "$1") arm64=$(realpath "$2") windows=$(realpath "$3")
wine=/usr/lib/wine/wine64
compiler=x86_64-w64-mingw32-gcc-win32
if ! { test -x $wine && command -v qemu-aarch64-static $compiler zstd; } >/dev/null; then
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
    wine64 qemu-user-static gcc-mingw-w64-x86-64-win32 zstd >/dev/null
fi
scratch=$(mktemp -d)
export WINEPREFIX=$scratch/wine WINEDEBUG=-all NO_COLOR=1
trap '/usr/lib/wine/wineserver -k 2>/dev/null || true; rm -rf "$scratch"' EXIT

# Programs of Go take random bytes from bcryptprimitives.dll, which the wine of Debian 12 (8.0) does not bring.
begin_wine() {
  $wine wineboot >/dev/null 2>&1
  cat >"$scratch/random.c" <<'C'
#include <windows.h>
BOOLEAN NTAPI SystemFunction036(PVOID, ULONG);
__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE bytes, SIZE_T n) { return SystemFunction036(bytes, (ULONG)n); }
C
  $compiler -shared -o "$WINEPREFIX/drive_c/windows/system32/bcryptprimitives.dll" "$scratch/random.c" -ladvapi32
}

# run prints what a command gives: of the program called native, arm64 or windows.
run() {
  local status=0
  case $1 in
    native) "$native" "${@:2}" ;;
    arm64) qemu-aarch64-static "$arm64" "${@:2}" ;;
    windows) $wine "$windows" "${@:2}" ;;
  esac </dev/null 2>&1 || status=$?
  echo "exit code $status"
}

# plain takes out what may differ: separators of paths, line ends, and what wine says itself.
plain() { sed -e '/^wine: /d' -e 's/\\\\/\//g' -e 's/\\/\//g' -e 's/\r$//'; }

digests() { find "$scratch/sets" -type f -print0 | sort -z | xargs -0 sha256sum; }

failed=0 commands=0
# same runs a command of each program, side by side, and compares.
same() {
  run native "$@" | plain >"$scratch/native"
  for system in arm64 windows; do
    run $system "$@" | plain >"$scratch/$system" &
  done
  wait
  for system in arm64 windows; do
    commands=$((commands + 1))
    if ! cmp -s "$scratch/native" "$scratch/$system"; then
      echo "emulate: in ${PWD##*/}, $system differs: etcd-medic $*"
      diff "$scratch/native" "$scratch/$system" | head -12 || true
      failed=$((failed + 1))
    fi
  done
}

begin_wine
sets=$PWD/testdata
for archive in "$sets"/incidents/*/nodes.tar.gz "$sets"/shapes/*/nodes.tar.zst; do
  set=$scratch/sets/$(basename "$(dirname "$archive")")
  mkdir -p "$set"
  tar -xaf "$archive" -C "$set"
done
digests >"$scratch/before"
for set in "$scratch"/sets/*; do
  cd "$set"
  mapfile -t sources < <(ls)
  same diagnose --full "${sources[@]}"
  same diagnose -w json "${sources[@]}"
  same inspect -w json "${sources[0]}"
  same dumplog "${sources[0]}"
  same dumpdb "${sources[0]}"
done
cd "$scratch"
digests | cmp - "$scratch/before"
echo "emulate: $commands commands of arm64 (qemu) and windows (wine), $failed with another answer than here; inputs unchanged"
test "$failed" -eq 0
