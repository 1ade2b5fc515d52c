#!/bin/sh
# Makes the .ptx files here anew from the .cu files: needs nvcc, clang and a C compiler with NVRTC's header.
set -eu
cd "$(dirname "$0")"
root=$(dirname "$(dirname "$(command -v nvcc)")")
for arch in 75 90; do
  nvcc -arch=sm_$arch -ptx kernels.cu -o kernels-sm_$arch.ptx
  nvcc -arch=sm_$arch -ptx features.cu -o features-sm_$arch.ptx
  nvcc -arch=sm_$arch -rdc=true -ptx kernels.cu -o kernels-rdc-sm_$arch.ptx
  nvcc -arch=sm_$arch -G -ptx debug.cu -o debug-G-sm_$arch.ptx
  nvcc -arch=sm_$arch -lineinfo -ptx debug.cu -o debug-lineinfo-sm_$arch.ptx
done
nvcc -arch=sm_90a -O1 -ptx features.cu -o features-sm_90a.ptx
for arch in 35 75; do
  clang -x cuda --cuda-device-only -nocudainc -nocudalib --cuda-gpu-arch=sm_$arch -O2 -S clang.cu -o clang-sm_$arch.ptx
done
work=$(mktemp -d)
trap 'rm -r "$work"' EXIT
cat > "$work/compile.c" <<'C'
#include <nvrtc.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char** argv) {
  static char source[1 << 20];
  fread(source, 1, sizeof source - 1, stdin);
  nvrtcProgram program;
  nvrtcCreateProgram(&program, source, "nvrtc.cu", 0, NULL, NULL);
  if (nvrtcCompileProgram(program, argc - 1, (const char* const*)argv + 1) != NVRTC_SUCCESS) return 1;
  size_t size;
  nvrtcGetPTXSize(program, &size);
  char* text = malloc(size);
  nvrtcGetPTX(program, text);
  return fwrite(text, 1, size - 1, stdout) != size - 1;
}
C
cc -I"$root/include" -L"$root/lib64" -Wl,-rpath,"$root/lib64" "$work/compile.c" -lnvrtc -o "$work/compile"
"$work/compile" --gpu-architecture=compute_75 < nvrtc.cu > nvrtc-sm_75.ptx
"$work/compile" --gpu-architecture=compute_90 -lineinfo < nvrtc.cu > nvrtc-sm_90.ptx
# What they name must not depend on where this ran.
sed -i 's|"/[^"]*/\([a-z]*\.cu\)"|"\1"|' ./*.ptx
