#!/usr/bin/env bash
# Compiles every kernel of this folder with nvcc and links it, so that none of them rots.
#
#   tests/kernels/compile.sh [--run] [--into DIR] [NVCC]
#
# NVCC: path of an nvcc. Without it: $NVCC, then nvcc on the PATH, then the compiler from the Python
# package index, installed once into .test-tools/cuda (needs python3, no GPU, no root).
# --run: also runs the programs and fails where a result is wrong (needs an NVIDIA GPU).
# --into: leaves the programs in DIR, each with ptxas's account of its kernels in NAME.ptxas, and skips
# the OpenCL twins.
# ARCH (default sm_80) is the target; a program that needs a newer one says so in a comment, "// architecture: sm_90a", and is
# not run elsewhere. The OpenCL twins are checked as well where clang is installed.
# Prints "N passed, N failed"; the exit status is 0 when nothing failed.
set -u
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
arch=${ARCH:-sm_80}
run=false
into=
nvcc=${NVCC:-}
while [ $# -gt 0 ]; do
  argument=$1
  shift
  case $argument in
    --run) run=true ;;
    --into)
      into=${1:?--into needs a folder}
      shift
      ;;
    -h | --help) sed -n '2,14s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 0 ;;
    -*) echo "compile.sh: unknown option $argument" >&2; exit 2 ;;
    *) nvcc=$argument ;;
  esac
done

# Prints the path of the nvcc inside the virtual environment, if it is there.
packaged_nvcc() {
  find "$root/.test-tools/cuda" -path '*/bin/nvcc' 2>/dev/null | head -n 1
}
if [ -z "$nvcc" ]; then nvcc=$(command -v nvcc || true); fi
if [ -z "$nvcc" ]; then nvcc=$(packaged_nvcc); fi
if [ -z "$nvcc" ]; then
  echo "installing nvcc into .test-tools/cuda" >&2
  python3 -m venv "$root/.test-tools/cuda" >&2 &&
    "$root/.test-tools/cuda/bin/pip" install --quiet --disable-pip-version-check \
      nvidia-cuda-nvcc nvidia-nvvm nvidia-cuda-crt nvidia-cuda-cuobjdump nvidia-cuda-nvdisasm \
      nvidia-cuda-runtime nvidia-cuda-cccl >&2
  nvcc=$(packaged_nvcc)
fi
if ! "$nvcc" --version >/dev/null 2>&1; then
  echo "compile.sh: no working nvcc (tried '${nvcc:-none}')" >&2
  echo "0 passed, 1 failed"
  exit 1
fi

# The packages keep the runtime library in lib, a toolkit in lib64 where nvcc finds it by itself.
toolkit=$(cd "$(dirname "$nvcc")/.." && pwd)
link_flags=()
if [ -d "$toolkit/lib" ]; then link_flags+=("-L$toolkit/lib"); fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0
failed=0
pass() { passed=$((passed + 1)); }
fail() {
  failed=$((failed + 1))
  echo "FAILED $1" >&2
  if [ -s "$work/log" ]; then sed 's/^/    /' "$work/log" >&2; fi
}

# The architecture that a program needs, where it says one.
needed() { sed -n 's/^\/\/ architecture: //p' "$1"; }

# Compiles one program; what is wrong with it, if anything, is in NAME.wrong, what the compiler or the program says in NAME.log.
compile() {
  local source=$1 name log kernels reported target
  name=$(basename "$source" .cu)
  log=$work/$name.log
  target=$(needed "$source")
  # What one architecture alone has is not compiled for those behind it.
  local code=("-arch=$arch")
  if [ -n "$target" ]; then code=(-gencode "arch=compute_${target#sm_},code=$target"); fi
  # -Werror: a warning in a kernel that others learn from is a defect.
  if ! "$nvcc" "${code[@]}" -std=c++17 -O3 -lineinfo -Werror all-warnings -Xcompiler -Wall,-Wextra \
    -Xptxas -v "${link_flags[@]}" -o "$work/$name" "$source" >"$log" 2>&1; then
    echo "does not compile" >"$work/$name.wrong"
    return
  fi
  # ptxas reports one resource line for each kernel (one for each instance of a template).
  kernels=$(grep -c '^__global__' "$source")
  reported=$(grep -c 'Used [0-9]* registers' "$log")
  if [ "$reported" -lt "$kernels" ]; then
    echo "$kernels kernels, but ptxas reports $reported" >"$work/$name.wrong"
  elif grep -q '[1-9][0-9]* bytes spill' "$log"; then
    echo "registers spill on ${target:-$arch}" >"$work/$name.wrong"
  fi
}

# As many at a time as there are processors; each compiles by itself.
jobs=$(nproc)
# True where the GPU has compute capability 9.0: what is compiled for that alone runs there only.
has_clusters() { nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | head -n 1 | grep -qx '9.0'; }
for source in "$here"/*.cu; do
  while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do wait -n; done
  compile "$source" &
done
wait
for source in "$here"/*.cu; do
  name=$(basename "$source" .cu)
  cp "$work/$name.log" "$work/log"
  if [ -s "$work/$name.wrong" ]; then
    fail "$name.cu: $(cat "$work/$name.wrong")"
    continue
  fi
  if [ -n "$into" ]; then
    cp "$work/$name" "$into/$name" && cp "$work/log" "$into/$name.ptxas"
  fi
  if $run && [ -n "$(needed "$source")" ] && ! has_clusters; then
    echo "$name: not run, it needs $(needed "$source")"
    pass
    continue
  fi
  if $run && ! "$work/$name" >"$work/log" 2>&1; then
    fail "$name.cu: wrong when run"
    continue
  fi
  if $run; then cat "$work/log"; fi
  pass
done

clang=$(command -v clang || command -v clang-19 || true)
if [ -n "$into" ]; then
  :
elif [ -n "$clang" ]; then
  for source in "$here"/*.cl; do
    name=$(basename "$source" .cl)
    standard=$(sed -n 's#^// language: ##p' "$source")
    if ! "$clang" -x cl "-cl-std=${standard:-CL1.2}" -Xclang -finclude-default-header -Wall -Wextra -Werror \
      -fsyntax-only "$source" >"$work/log" 2>&1; then
      fail "$name.cl: does not compile"
      continue
    fi
    # Every kernel is the twin of one in the .cu file of the same name, where there is one.
    : >"$work/log"
    if [ ! -e "$here/$name.cu" ]; then
      pass
      continue
    fi
    for kernel in $(grep -o 'void [a-z_]*(' "$source" | tr -d '(' | cut -d ' ' -f 2); do
      grep -qw "$kernel" "$here/$name.cu" || echo "$name.cu has no $kernel" >>"$work/log"
    done
    if [ -s "$work/log" ]; then
      fail "$name.cl: a kernel without a twin"
      continue
    fi
    pass
  done
else
  echo "no clang: the OpenCL kernels were not compiled" >&2
fi

hipcc=$(command -v hipcc || true)
if [ -n "$into" ]; then
  :
elif [ -n "$hipcc" ]; then
  for source in "$here"/*.hip; do
    if ! "$hipcc" --offload-arch=gfx90a --cuda-device-only -std=c++17 -O3 -Wall -Wextra -S -o "$work/device.s" \
      "$source" >"$work/log" 2>&1; then
      fail "$(basename "$source"): does not compile"
      continue
    fi
    pass
  done
else
  echo "no hipcc: the HIP kernels were not compiled" >&2
fi

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
