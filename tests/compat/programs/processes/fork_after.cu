// compat: a fork while kernels run; the child only prints, only ends, or becomes another program
// args: print
// args: exit
// args: exec
// args: exec_compute
// needs: two-processes
// soft: yes
#include "process.h"

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "print";
  if (what == "child") {
    std::printf("another program\n");
    return 12;
  }
  if (what == "child_compute") {
    print_compute("another program", 5);
    return 13;
  }
  print_compute("parent", 0);
  for (int i = 0; i < 3; ++i) {
    leave_running();
    std::fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
      if (what == "print") {
        const char text[] = "child\n";
        if (write(1, text, sizeof text - 1) < 0) _exit(1);
        _exit(14);
      }
      if (what == "exit") std::exit(15);
      if (what == "exec") exec_self({"child"});
      exec_self({"child_compute"});
    }
    print_end("child", child);
    CHECK(cudaDeviceSynchronize());
  }
  print_compute("parent", 1);
  return 0;
}
