/* A program that looks at its slice. It needs no CUDA:
 *   cc slice.c -o slice $(pkg-config --cflags --libs gpuslice)
 *   gpuctl run --slice batch ./slice */
#include <gpuslice/gpuslice.h>
#include <stdio.h>

int main(void) {
  char slice[1024];
  int error = gpuslice_slice(slice, sizeof slice);
  printf("interface %d, slice %s\n", gpuslice_version(), error == 0 ? slice : gpuslice_error_string(error));
  return 0;
}
