#!/usr/bin/env bash
# Looks at the page of `warplens report` in a real browser, light and dark, wide and narrow. Screenshots land in
# tests/artifacts/report. Needs Node 20 and Chromium.
#
# usage: run.sh        WARPLENS_BIN=PATH  the program under test
#                      CHROMIUM=PATH      the browser; default chromium, chromium-browser or google-chrome on the PATH
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
fail() { echo "run.sh: $*" >&2; echo "0 passed, 1 failed"; exit 1; }

[ -x "${WARPLENS_BIN:-}" ] || fail "WARPLENS_BIN names no program"
if [ -z "${CHROMIUM:-}" ]; then
  for name in chromium chromium-browser google-chrome; do
    CHROMIUM=$(command -v "$name") && break
  done
fi
[ -n "${CHROMIUM:-}" ] || fail "no Chromium on the PATH"
if ! [ "$here/node_modules/.package-lock.json" -nt "$here/package-lock.json" ]; then
  (cd "$here" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error) || fail "npm ci"
fi
exec node "$here/look.mjs" "$WARPLENS_BIN" "$CHROMIUM"
