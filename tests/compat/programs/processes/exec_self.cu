// compat: a program that becomes itself again while its kernels run, in the same process
// soft: yes
#include "process.h"

int main(int argc, char** argv) {
  const int life = argc > 1 ? std::atoi(argv[1]) : 0;
  std::printf("life %d, process %s\n", life,
              argc > 2 && std::atoi(argv[2]) == getpid() ? "same"
              : argc > 2                                 ? "OTHER"
                                                         : "first");
  print_compute("life", static_cast<unsigned>(life));
  if (life == 3) return 0;
  leave_running();
  exec_self({std::to_string(life + 1), std::to_string(getpid())});
}
