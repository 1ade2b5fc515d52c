// What gpuctl needs of nvidia-cuda-mps-server, for tests: it has the context that all clients share, and the context's
// channel groups.
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

int main(void) {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  int (*init)(unsigned) = NULL;
  if (driver != NULL) *(void**)&init = dlsym(driver, "cuInit");
  if (init == NULL || init(0) != 0) return 1;
  for (;;) pause();
}
