// compat: children by system, popen and posix_spawn while kernels run
// soft: yes
#include <spawn.h>

#include "process.h"

int main() {
  print_compute("begin", 0);
  leave_running();
  std::printf("system: %d\n", WEXITSTATUS(std::system("echo from a shell; exit 3")));
  std::fflush(stdout);
  leave_running();
  FILE* pipe = popen("echo from a pipe; echo two lines", "r");
  char line[100];
  while (pipe && std::fgets(line, sizeof line, pipe)) std::printf("read %s", line);
  std::printf("pclose: %d\n", pipe ? WEXITSTATUS(pclose(pipe)) : -1);
  std::fflush(stdout);
  pipe = popen("cat; exit 4", "w");
  if (pipe) std::fputs("through cat\n", pipe);
  std::printf("pclose: %d\n", pipe ? WEXITSTATUS(pclose(pipe)) : -1);
  std::fflush(stdout);
  leave_running();
  pid_t child = 0;
  std::string words[] = {"sh", "-c", "echo spawned; exit 5"};
  char* arguments[] = {words[0].data(), words[1].data(), words[2].data(), nullptr};
  if (posix_spawn(&child, "/bin/sh", nullptr, nullptr, arguments, environ) != 0) return 2;
  print_end("spawned", child);
  CHECK(cudaDeviceSynchronize());
  print_compute("end", 1);
  return 0;
}
