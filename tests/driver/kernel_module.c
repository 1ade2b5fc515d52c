// NVIDIA's kernel module for the software GPU (SOFTGPU_CHANNELS=1), as far as channel groups go. Put into a program by
// LD_PRELOAD behind libgpuslice, it takes the place of the C library's ioctl: what is asked of /dev/null is asked of
// it. The time slice of a group is how long turns of the program's context last.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

enum { kSetTimeSlice = 0xa06c0103, kGetTimeSlice = 0xa06c0104, kDriversUs = 2048 };

static void control(char* call) {
  uint32_t command = 0;
  uint64_t place = 0, us = kDriversUs;
  memcpy(&command, call + 8, sizeof command);
  memcpy(&place, call + 16, sizeof place);
  uint64_t* told = (uint64_t*)(uintptr_t)place;
  if (command == kGetTimeSlice) *told = us;
  if (command != kSetTimeSlice) return;
  us = *told;
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  void (*set_turn)(unsigned) = NULL;
  if (driver != NULL) *(void**)&set_turn = dlsym(driver, "softgpu_set_turn");
  if (set_turn != NULL) set_turn(us == kDriversUs ? 0 : (unsigned)us);
}

int ioctl(int fd, unsigned long request, ...) {
  va_list arguments;
  va_start(arguments, request);
  void* argument = va_arg(arguments, void*);
  va_end(arguments);
  switch ((uint32_t)request) {
    case 0xc020462b:  // RM_ALLOC: the handles are the caller's, the status stays 0
      return 0;
    case 0xc020462a:  // RM_CONTROL
      control(argument);
      return 0;
    default:
      return (int)syscall(SYS_ioctl, fd, request, argument);
  }
}

/// The numbers of /dev/null are those of /dev/nvidiactl.
int fstat(int fd, struct stat* status) {
  const int result = (int)syscall(SYS_fstat, fd, status);
  if (result == 0 && S_ISCHR(status->st_mode) && status->st_rdev == makedev(1, 3)) status->st_rdev = makedev(195, 255);
  return result;
}
