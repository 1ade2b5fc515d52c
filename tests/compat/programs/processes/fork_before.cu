// compat: a fork before the first call; parent and children use the GPU at the same time
// needs: two-processes
// soft: yes
#include "process.h"

int main() {
  constexpr unsigned kChildren = 3;
  pid_t children[kChildren];
  for (unsigned i = 0; i < kChildren; ++i) {
    children[i] = fork();
    if (children[i] == 0) {
      // One ends as a program does, one without its handlers, one by a signal.
      const bool right = compute(i);
      if (i == 1) _exit(right ? 11 : 1);
      if (i == 2) std::abort();
      return right ? 10 : 1;
    }
  }
  print_compute("parent", 100);
  for (unsigned i = 0; i < kChildren; ++i) print_end("child", children[i]);
  print_compute("parent", 200);
  return 0;
}
