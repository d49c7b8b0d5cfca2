#!/usr/bin/env bash
# Tests the extension: types, units, and the packaged extension with a real server in a real VS Code (code-server in
# headless Chromium). Screenshots land in tests/artifacts/vscode.
#
# usage: run.sh        WARPLENS_BIN=PATH  the server to test; default target/release/warplens, else target/debug/warplens
#                      CHROMIUM=PATH      the browser; default chromium, chromium-browser or google-chrome on the PATH
#                      IMAGES=1           take the pictures of the README and the walkthrough anew
#                      KEEP=1             leave the editor's folder in place afterwards, for a look at its logs
#
# Needs Node 20, ripgrep, a C++ compiler, make, python3, the headers of x11, xkbfile, libsecret and krb5, and Chromium.
# The first run installs code-server into .test-tools, which takes some minutes; it is then kept.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
extension=$(dirname "$here")
repository=$(cd "$extension/../.." && pwd)
tools=$repository/.test-tools

fail() { echo "run.sh: $*" >&2; echo "0 passed, 1 failed"; exit 1; }

# The editor's own tests print the last line; whatever goes wrong before them is a failure of its own.
trap 'status=$?; [ $status -eq 0 ] || [ -n "${reported:-}" ] || echo "0 passed, 1 failed"' EXIT

if [ -z "${WARPLENS_BIN:-}" ]; then
  for build in release debug; do
    [ -x "$repository/target/$build/warplens" ] && { WARPLENS_BIN=$repository/target/$build/warplens; break; }
  done
fi
[ -n "${WARPLENS_BIN:-}" ] || { reported=1; fail "no warplens in target/; build it with cargo build, or set WARPLENS_BIN"; }
WARPLENS_BIN=$(realpath "$WARPLENS_BIN")

if [ -z "${CHROMIUM:-}" ]; then
  for name in chromium chromium-browser google-chrome; do
    CHROMIUM=$(command -v "$name") && break
  done
fi
[ -n "${CHROMIUM:-}" ] || { reported=1; fail "no Chromium on the PATH"; }

install_packages() {
  # Only when the lock file is newer than what is installed.
  [ "$1/node_modules/.package-lock.json" -nt "$1/package-lock.json" ] && return
  (cd "$1" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error)
}

install_packages "$extension"
install_packages "$here"
cd "$extension"
echo "== types"
npm run --silent check
echo "== units"
npm run --silent test
echo "== package"
npm run --silent package -- "$WARPLENS_BIN"
echo "== code-server"
code_server=$(nice -n 10 node "$here/install-code-server.mjs" "$tools/code-server")
echo "== editor, with $WARPLENS_BIN"
reported=1
exec node "$here/editor.test.mjs" \
  --code-server "$code_server" --chromium "$CHROMIUM" --vsix "$extension/warplens.vsix" \
  --repository "$repository" ${KEEP:+--keep}
