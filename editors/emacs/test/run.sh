#!/usr/bin/env bash
# Tests the configuration that docs/editors/others.md gives for Emacs, in a real Emacs with a real server.
#
#   editors/emacs/test/run.sh
#
# WARPLENS_BIN: the program under test; by default target/release/warplens, else target/debug. EMACS: the editor, by
# default the one on the PATH; it needs eglot (part of Emacs 29, Debian's elpa-eglot before). Prints "N passed, N failed";
# exit status 0 when nothing failed. Never runs longer than about three minutes. What a person sees is drawn as
# tests/artifacts/emacs/hover.svg, where there is a tmux; IMAGES=1 takes it as the book's picture.
set -u
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../../.." && pwd)

fail() { echo "$*" >&2; echo "0 passed, 1 failed"; exit 1; }

if [ -z "${WARPLENS_BIN:-}" ]; then
  for profile in release debug; do
    if [ -x "$root/target/$profile/warplens" ]; then
      WARPLENS_BIN=$root/target/$profile/warplens
      break
    fi
  done
fi
[ -x "${WARPLENS_BIN:-}" ] || fail "no warplens program: build it (cargo build --release -p warplens) or set WARPLENS_BIN"
emacs=${EMACS:-$(command -v emacs || true)}
[ -n "$emacs" ] || fail "there is no emacs (apt-get install emacs-nox elpa-eglot)"

work=$(mktemp -d)
socket=warplens-emacs-$$
trap 'tmux -L "$socket" kill-server 2>/dev/null; rm -rf "$work"' EXIT
passed=0
failed=0

# The page's block is what is tested: init.el contains each of its lines.
sed -n '/^## Emacs/,/^## /p' "$root/docs/editors/others.md" | sed -n '/^```elisp$/,/^```$/p' | sed '/^```/d' >"$work/page.el"
sed '1,/^;; What follows is the page/d' "$here/init.el" >"$work/init.el"
if [ -s "$work/page.el" ] && diff "$work/page.el" "$work/init.el" >"$work/difference"; then
  echo "ok      docs/editors/others.md has the configuration that is tested"
  passed=1
else
  echo "FAILED  docs/editors/others.md and editors/emacs/test/init.el differ"
  cat "$work/difference" 2>/dev/null
  failed=1
fi

# A home of its own, and the program under test as the one on the PATH.
mkdir "$work/home" "$work/bin" "$work/project"
ln -s "$(realpath "$WARPLENS_BIN")" "$work/bin/warplens"
cp "$root"/tests/kernels/transpose.cu "$root"/tests/kernels/transpose.cl "$root"/tests/kernels/harness.cuh "$work/project"
# The folder is a project: eglot asks no questions about its root.
git -C "$work/project" init --quiet
HOME=$work/home PATH=$work/bin:$PATH WARPLENS_PROJECT=$work/project LC_ALL=C.UTF-8 timeout --kill-after=5 150 "$emacs" --batch \
  --load "$here/init.el" --load "$here/test.el" >"$work/out" 2>"$work/err" </dev/null
status=$?
grep -E '^(ok|FAILED|        )' "$work/out"
summary=$(grep '^[0-9]* passed, [0-9]* failed$' "$work/out" | tail -n 1)
if [ -n "$summary" ]; then
  passed=$((passed + ${summary%% *}))
  rest=${summary#*, }
  failed=$((failed + ${rest%% *}))
fi
if [ "$status" -ne 0 ] && [ "$failed" -eq 0 ]; then
  echo "FAILED  the checks did not end by themselves (status $status)"
  failed=1
fi
[ "$failed" -eq 0 ] || tail -n 20 "$work/err"

# A picture of the editor, for the book: what the echo area says of the access at point.
artifacts=$root/tests/artifacts/emacs
mkdir -p "$artifacts"
if command -v tmux >/dev/null; then
  export HOME=$work/home PATH=$work/bin:$PATH WARPLENS_PROJECT=$work/project LC_ALL=C.UTF-8 TERM=xterm-256color
  tmux -L "$socket" -f /dev/null new-session -d -x 140 -y 28 "'$emacs' -nw --load '$here/init.el' --load '$here/picture.el'"
  for _ in $(seq 60); do
    # A movement, for Emacs describes what is at point after a command.
    tmux -L "$socket" send-keys C-f C-b
    sleep 1
    tmux -L "$socket" capture-pane -p >"$artifacts/hover.txt" 2>/dev/null
    grep -q '32 passes, ideal 1' "$artifacts/hover.txt" && break
  done
  tmux -L "$socket" capture-pane -e -p | python3 "$here/picture.py" "$artifacts/hover.svg"
  if grep -q '32 passes, ideal 1' "$artifacts/hover.txt" && grep -q '32 passes, ideal 1' "$artifacts/hover.svg"; then
    if [ -n "${IMAGES:-}" ]; then cp "$artifacts/hover.svg" "$root/docs/editors/images/emacs-hover.svg"; fi
    echo "ok      the picture of the book"
    passed=$((passed + 1))
  else
    echo "FAILED  the picture of the book"
    cat "$artifacts/hover.txt"
    failed=$((failed + 1))
  fi
else
  echo "skipped the picture of the book: there is no tmux" >&2
fi
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
