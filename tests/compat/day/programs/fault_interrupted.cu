// compat: Ctrl-C in a program without a handler, in the middle of its kernels
// signal: INT ready
// soft: yes
#include "endless.h"

int main() {
  launch_until_killed();
}
