#!/bin/sh
# Makes the .hex files here anew (xxd -p of a fatbin each).
set -eu
cd "$(dirname "$0")"
make() { # NAME NVCC-ARGUMENTS...
  name=$1
  shift
  nvcc "$@" -fatbin kernel.cu -o "$name.fatbin"
  xxd -p "$name.fatbin" > "$name.hex"
  rm "$name.fatbin"
}
make zstd -gencode arch=compute_75,code=compute_75 -gencode arch=compute_90a,code=compute_90a -maxrregcount=32
make lz4 -gencode arch=compute_80,code=compute_80 --compress-mode=speed
make raw -gencode arch=compute_75,code=compute_75 --compress-mode=none
make family -gencode arch=compute_100f,code=compute_100f -Xptxas -O1
make machine_code -gencode arch=compute_75,code=sm_75 --compress-mode=size
