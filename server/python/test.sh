#!/usr/bin/env bash
# The package is built and installed as docs/python.md says, where nothing else is, then asked: the tests of server/python/tests.
# WARPLENS_BIN names the server that it is held against.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

tools=$PWD/.test-tools/python
wanted=server/python/tests/requirements.txt
if ! cmp -s "$wanted" "$tools/requirements.txt"; then
  rm -rf "$tools"
  python3 -m venv "$tools"
  "$tools/bin/pip" install --quiet --disable-pip-version-check -r "$wanted"
  cp "$wanted" "$tools/"
fi

# With the maturin that is pinned, not the newest.
PATH="$tools/bin:$PATH" "$tools/bin/pip" install --quiet --disable-pip-version-check --no-build-isolation --no-deps \
  --force-reinstall ./server/python

PATH="$tools/bin:$PATH" exec "$tools/bin/python" server/python/tests/run.py
