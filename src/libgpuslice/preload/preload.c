// What /etc/ld.so.preload of a container names (gpuctl cdi): it brings libgpuslice into each program there, whatever C
// library the image has. It needs nothing that glibc has not had since 2.4, so every ld.so can load it.
//
// It is an auxiliary filter (ld -f): ld.so loads libgpuslice.so with it, puts that in front of it, and goes on without
// a word if there is none. It is searched for where containers have the library: in a directory
// glibc-hwcaps/x86-64-v2, where ld.so looks from glibc 2.33 on. An older ld.so does not find it, and so does not fail
// for lack of a version of a symbol, which would end every program.
#define _GNU_SOURCE
#include <gnu/libc-version.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

extern int gpuslice_version(void) __attribute__((weak));

/// Said once in a container, by its first process.
__attribute__((constructor)) static void say_if_alone(void) {
  const char* slice = getenv("GPUCTL_SLICE");
  if (gpuslice_version != NULL || getpid() != 1 || slice == NULL) return;
  dprintf(STDERR_FILENO,
          "gpuctl: slice '%.64s' does not limit this container: glibc %s finds no library of gpuctl that it can load\n",
          slice, gnu_get_libc_version());
}
