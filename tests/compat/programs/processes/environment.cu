// compat: children that are started without LD_PRELOAD, or with no environment but the library path
// args: unset
// args: empty
// needs: two-processes
// soft: yes
#include "process.h"

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "unset";
  if (what == "child") {
    print_compute("child", 1);
    return 0;
  }
  print_compute("parent", 0);
  leave_running();
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    std::vector<char*> kept;
    for (char** variable = environ; *variable; ++variable) {
      const bool preload = std::strncmp(*variable, "LD_PRELOAD=", 11) == 0;
      const bool needed = std::strncmp(*variable, "LD_LIBRARY_PATH=", 16) == 0 ||
                          std::strncmp(*variable, "CUDA_", 5) == 0 || std::strncmp(*variable, "SOFTGPU_", 8) == 0;
      if (what == "empty" ? needed : !preload) kept.push_back(*variable);
    }
    kept.push_back(nullptr);
    exec_self({"child"}, kept.data());
  }
  print_end("child", child);
  CHECK(cudaDeviceSynchronize());
  print_compute("parent", 2);
  return 0;
}
