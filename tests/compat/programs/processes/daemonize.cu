// compat: a process that closes its files from 3 up, leaves its session and then computes; its parent waits
// needs: two-processes
// soft: yes
#include <fcntl.h>

#include "process.h"

int main() {
  std::printf("parent\n");
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    for (int file = 3; file < 1024; ++file) close(file);
    if (setsid() < 0 || chdir("/") != 0) _exit(1);
    const int null = open("/dev/null", O_RDWR);
    dup2(null, 0);
    if (null > 2) close(null);
    print_compute("daemon", 1);
    leave_running();
    print_compute("daemon", 2);
    return 21;
  }
  print_end("daemon", child);
  print_compute("parent", 3);
  return 0;
}
