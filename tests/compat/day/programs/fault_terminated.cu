// compat: SIGTERM in a program without a handler, in the middle of its kernels
// signal: TERM ready
// soft: yes
#include "endless.h"

int main() {
  launch_until_killed();
}
