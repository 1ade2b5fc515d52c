// What a tool for GPU programs is to a program that it was put into (LD_PRELOAD): it has the function by which NVTX
// finds a tool, and sees what the program becomes. It adds a variable to the environment of that.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>

#define MOST 1000

int InitializeInjectionNvtx2(void* get_export_table) {
  (void)get_export_table;
  return 1;
}

int execve(const char* path, char* const* arguments, char* const* environment) {
  static char seen[] = "SEEN_BY_TOOL=1";
  char* more[MOST + 2];
  size_t count = 0;
  for (; count < MOST && environment[count] != NULL; ++count) more[count] = environment[count];
  more[count] = seen;
  more[count + 1] = NULL;
  int (*next)(const char*, char* const*, char* const*) = NULL;
  *(void**)&next = dlsym(RTLD_NEXT, "execve");
  return next(path, arguments, more);
}
