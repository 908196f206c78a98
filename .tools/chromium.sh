#!/usr/bin/env bash
# Sees to it that there is a Chromium for `make browser`: Debian's package chromium is installed where none is found and root is at work.
set -euo pipefail

for name in headless-shell chromium chromium-browser google-chrome google-chrome-stable; do
  if command -v "$name" >/dev/null; then
    exit 0
  fi
done
help='make browser needs a Chromium. Install one, on Debian as root with: apt-get install chromium'
if ! command -v apt-get >/dev/null; then
  echo "$help (apt-get is not here)" >&2
  exit 1
fi
if [ "$(id -u)" != 0 ]; then
  echo "$help (this user may not install packages)" >&2
  exit 1
fi
export DEBIAN_FRONTEND=noninteractive
if ! { timeout 300 apt-get update -q && timeout 600 apt-get install -q -y --no-install-recommends chromium; } >&2; then
  echo "$help (apt-get could not install it; what it said stands above)" >&2
  exit 1
fi
command -v chromium >/dev/null || { echo "$help (the package brought no program chromium)" >&2; exit 1; }
