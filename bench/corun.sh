#!/usr/bin/env bash
# Runs the co-run matrix (docs/corun.md) from a checkout, with a build directory that may have been made elsewhere:
#   bench/corun.sh [--build-dir DIR] OPTION...        bench/corun.sh --help; --list prints the names of programs and
#                                                     configurations
# The build directory needs src/gpuctl/gpuctl, src/gpuctld/gpuctld, src/libgpuslice/libgpuslice.so and
# bench/corun-kernels. Without the last it is compiled there, if there is an nvcc.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

build=build
words=("$@")
for ((i = 0; i < $#; ++i)); do
  case ${words[i]} in
    --build-dir) build=${words[i + 1]:?--build-dir needs a directory} ;;
    --build-dir=*) build=${words[i]#*=} ;;
    --help | -h | --list) PYTHONPATH=$here/.. exec python3 -m bench.corun "$@" ;;
  esac
done
build=$(cd "$build" && pwd) || exit 2
"$build/src/gpuctl/gpuctl" --version >&2 || { echo "corun.sh: $build/src/gpuctl/gpuctl does not run here" >&2; exit 2; }
if [[ " ${words[*]} " != *" --software "* && ! -x $build/bench/corun-kernels ]]; then
  nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
  [[ -x $nvcc ]] || { echo "corun.sh: no $build/bench/corun-kernels, and no nvcc to compile it" >&2; exit 2; }
  mkdir -p "$build/bench"
  "$nvcc" -std=c++17 -O2 -gencode arch=compute_80,code=sm_80 -gencode 'arch=compute_90,code=[sm_90,compute_90]' \
    -I "$here/../src" -o "$build/bench/corun-kernels" "$here/corun/programs/kernels.cu"
fi
root=$(cd "$here/.." && pwd)
export PYTHONPATH=$root${PYTHONPATH:+:$PYTHONPATH} PYTHONDONTWRITEBYTECODE=1
exec python3 -m bench.corun --build-dir "$build" "$@"
