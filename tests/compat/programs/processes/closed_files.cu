// compat: a program that runs with stdin, stdout and stderr closed, closed by itself or by who started it
// args: here
// args: started
// soft: yes
#include <fcntl.h>

#include "process.h"

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "here";
  if (what == "child") return compute(3) ? 31 : 32;
  if (what == "started") {
    const pid_t child = fork();
    if (child == 0) {
      for (int file = 0; file < 3; ++file) close(file);
      exec_self({"child"});
    }
    print_end("child", child);
    return 0;
  }
  const int out = fcntl(1, F_DUPFD_CLOEXEC, 100);
  for (int file = 0; file < 3; ++file) close(file);
  std::uint64_t hash = 0;
  const bool right = compute(4, &hash);
  leave_running();
  const cudaError_t error = cudaDeviceSynchronize();
  dprintf(out, "%s %016llx, %s\n", right ? "right" : "WRONG", static_cast<unsigned long long>(hash),
          cudaGetErrorName(error));
  return 0;
}
