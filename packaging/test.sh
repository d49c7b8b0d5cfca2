#!/usr/bin/env bash
# Tests the packages: makes each of the program that WARPLENS_BIN names, unpacks or installs it into a folder of its own, and
# runs what came out. Ends with "N passed, M failed".
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

: "${WARPLENS_BIN:?the program to package}"
xtask=${XTASK:-cargo xtask}
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
target=$(rustc -vV | sed -n 's/^host: //p')
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export SOURCE_DATE_EPOCH=1700000000

passed=0 failed=0
check() {
  local what=$1
  shift
  if "$@" > "$work/said" 2>&1; then
    passed=$((passed + 1))
    echo "ok: $what"
  else
    failed=$((failed + 1))
    echo "FAILED: $what"
    sed 's/^/    /' "$work/said"
  fi
}
# What is checked runs in a condition, where an error in the middle would not count: one command, or a chain of them.
# Each line of standard input is a file that the listing has to name.
lists() { local name; while read -r name; do grep -qxF -- "$name" "$1" || { echo "lacks $name"; return 1; }; done; }

check "every crate is packaged with what it needs" $xtask package crates --no-verify

check "the program's packages are made" $xtask package program --program "$WARPLENS_BIN" --target "$target" --out "$work/one"
check "they are made again" $xtask package program --program "$WARPLENS_BIN" --target "$target" --out "$work/two"
check "and are the same bytes" diff -r "$work/one" "$work/two"
check "their checksums are right" bash -c "cd '$work/one' && sha256sum -c *.sha256"

name=warplens-$version-$target
mkdir "$work/archive"
check "the archive unpacks" tar -xzf "$work/one/$name.tar.gz" -C "$work/archive"
(cd "$work/archive/$name" 2>/dev/null && find . -type f | sed 's|^\./||' | sort) > "$work/archive.list" || true
check "it holds program, licences, pages, completions and materials" lists "$work/archive.list" <<'END'
warplens
LICENSE-MIT
LICENSE-APACHE
THIRD-PARTY.txt
README.md
CHANGELOG.md
warplens.cdx.json
man/warplens.1
man/warplens-check.1
completions/warplens.bash
completions/_warplens
completions/warplens.fish
completions/_warplens.ps1
completions/warplens.elv
END
check "its program runs" "$work/archive/$name/warplens" --version
check "the materials name the grammar, what it links, and nothing that only tests use" python3 - "$work/archive/$name" <<'END'
import json, pathlib, sys
folder = pathlib.Path(sys.argv[1])
bill = json.loads((folder / "warplens.cdx.json").read_text())
assert bill["bomFormat"] == "CycloneDX" and bill["specVersion"] == "1.5"
# A crate may be linked in two versions.
parts = bill["components"]
names = {part["name"] for part in parts}
assert bill["metadata"]["component"]["name"] == "warplens"
assert {"tree-sitter-cuda", "warplens-db", "clap"} <= names, sorted(names)
assert not {"proptest", "warplens-oracle", "xtask", "lab", "cc"} & names, sorted(names)
refs = {part["bom-ref"] for part in parts} | {bill["metadata"]["component"]["bom-ref"]}
assert {edge["ref"] for edge in bill["dependencies"]} == refs
assert all(needed in refs for edge in bill["dependencies"] for needed in edge["dependsOn"])
for part in parts:
    assert part["licenses"][0]["expression"], part
    assert part["name"].startswith("warplens-") or len(part["hashes"][0]["content"]) == 64, part
notices = (folder / "THIRD-PARTY.txt").read_text()
assert all(f"\n{part['name']} {part['version']}: " in notices for part in parts)
assert "Max Brunsfeld" in notices, "tree-sitter's own licence"
END
check "the manual pages have no mistakes" bash -c "
  command -v man >/dev/null || exit 0
  for page in '$work/archive/$name'/man/*.1; do
    said=\$(MANWIDTH=100 LC_ALL=C.UTF-8 man --warnings=w -l \"\$page\" 2>&1 >/dev/null)
    [ -z \"\$said\" ] || { echo \"\$page: \$said\"; exit 1; }
  done"

case $target in x86_64-*) arch=amd64 ;; aarch64-*) arch=arm64 ;; esac
deb=$work/one/warplens_${version}_$arch.deb
check "the Debian package says what it is" bash -c "dpkg-deb -f '$deb' Package Version Architecture Description | tee /dev/stderr |
  grep -q '^Version: $version\$'"
dpkg-deb -c "$deb" 2>/dev/null | awk '{ print $1, $2, $6 }' > "$work/deb.list" || true
check "it lays files out as Debian does, owned by root" lists "$work/deb.list" <<'END'
-rwxr-xr-x root/root ./usr/bin/warplens
-rw-r--r-- root/root ./usr/share/man/man1/warplens.1.gz
-rw-r--r-- root/root ./usr/share/bash-completion/completions/warplens
-rw-r--r-- root/root ./usr/share/zsh/vendor-completions/_warplens
-rw-r--r-- root/root ./usr/share/fish/vendor_completions.d/warplens.fish
-rw-r--r-- root/root ./usr/share/doc/warplens/copyright
-rw-r--r-- root/root ./usr/share/doc/warplens/changelog.gz
drwxr-xr-x root/root ./usr/bin/
END
install_deb() {
  local root=$work/root
  mkdir -p "$root/var/lib/dpkg/updates" "$root/var/lib/dpkg/info" && touch "$root/var/lib/dpkg/status" &&
    fakeroot dpkg --root="$root" --force-not-root --log=/dev/null --install "$deb" &&
    "$root/usr/bin/warplens" gpus h100-sxm5 &&
    fakeroot dpkg --root="$root" --force-not-root --log=/dev/null --remove warplens &&
    [ ! -e "$root/usr/bin/warplens" ]
}
check "it installs, runs and is removed" install_deb

check "the editors' packages are made" $xtask package editors --out "$work/editors"
check "and the extension with a server" $xtask package editors --program "$WARPLENS_BIN" --target "$target" --out "$work/editors"
platform=linux-x64
[ "$arch" = arm64 ] && platform=linux-arm64
listing() { python3 -m zipfile -l "$1" 2>/dev/null | awk 'NR > 1 { print $1 }'; }
listing "$work/editors/warplens-$version.vsix" > "$work/universal.list" || true
listing "$work/editors/warplens-$version-$platform.vsix" > "$work/platform.list" || true
for kind in universal platform; do
  check "the $kind extension holds what it runs on" lists "$work/$kind.list" <<'END'
extension/package.json
extension/readme.md
extension/LICENSE.txt
extension/changelog.md
extension/out/extension.js
extension/schemas/warplens.schema.json
extension/syntaxes/opencl.tmLanguage.json
END
  check "the $kind extension has no sources or tests" bash -c "[ -s '$work/$kind.list' ] && ! grep -E 'extension/(src|test|node_modules|out/test)/' '$work/$kind.list'"
done
check "the universal one has no server" bash -c "[ -s '$work/universal.list' ] && ! grep extension/server '$work/universal.list'"
check "that of a platform has it" lists "$work/platform.list" <<< extension/server/warplens

mkdir -p "$work/site/pack/warplens/start"
check "Neovim's plugin unpacks as a folder" tar -xzf "$work/editors/warplens-$version-neovim.tar.gz" -C "$work/site/pack/warplens/start"
(cd "$work/site/pack/warplens/start" && find . -type f | sed 's|^\./||') > "$work/neovim.list"
check "it has no tests" bash -c "[ -s '$work/neovim.list' ] && ! grep warplens/test/ '$work/neovim.list'"
check "it holds the configuration, the commands and the help" lists "$work/neovim.list" <<'END'
warplens/lsp/warplens.lua
warplens/plugin/warplens.lua
warplens/doc/warplens.txt
warplens/LICENSE-MIT
END

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
