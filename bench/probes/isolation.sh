#!/usr/bin/env bash
# What is not known yet about contexts that take turns (docs/design/isolation.md), on a machine with a GPU and MPS's
# programs, in some four minutes. It needs compute mode DEFAULT, and no MPS that serves already; it changes no setting of
# the GPU.
#   isolation.sh [BUILD]      BUILD: a build directory of gpuctl; with it gpuctl's own MPS is tried too
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build=${1:+$(cd "$1" && pwd)}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cuda=${CUDA_HOME:-/usr/local/cuda}
g++ -O1 "$here/contexts.cc" -o "$scratch/contexts" -I"${GPUCTL_CUDA_INCLUDE:-$cuda/include}" -L"$cuda/lib64/stubs" -lcuda
nvidia-smi --query-gpu=name,driver_version,compute_mode,mig.mode.current --format=csv,noheader || true
exec python3 "$here/isolation.py" "$scratch" ${build:+"$build"}
