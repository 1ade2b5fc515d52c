// compat: a program in mid-kernel that fails to become another one, goes on, and when it is idle becomes itself anew
// attached: 2
// soft: yes
#include "process.h"

int main(int argc, char**) {
  if (argc > 1) {
    print_compute("second", 2);
    return 0;
  }
  print_compute("first", 0);
  leave_running();
  std::printf("not there: %d\n", execl("/nowhere/program", "program", static_cast<char*>(nullptr)));
  std::fflush(stdout);
  CHECK(cudaDeviceSynchronize());
  print_compute("still the first", 1);
  exec_self({"second"});
}
