// compat: a program that waits for all its children, and has none but its own
// soft: yes
#include <signal.h>
#include <time.h>

#include "process.h"

namespace {

volatile sig_atomic_t signals = 0;

void count_signal(int) {
  signals = signals + 1;
}

void print_wait(const char* when) {
  int status = 0;
  errno = 0;
  const pid_t got = waitpid(-1, &status, WNOHANG);
  std::printf("%s: %s", when,
              got == -1 && errno == ECHILD ? "no child"
              : got == 0                   ? "A CHILD THAT RUNS"
                                           : "A CHILD THAT ENDED");
  siginfo_t information = {};
  errno = 0;
  const int also = waitid(P_ALL, 0, &information, WEXITED | WNOHANG | WNOWAIT | __WALL);
  std::printf(", %s\n", also == -1 && errno == ECHILD ? "none of any kind" : "ONE OF ANOTHER KIND");
  std::fflush(stdout);
}

}  // namespace

int main() {
  struct sigaction action = {};
  action.sa_handler = count_signal;
  if (sigaction(SIGCHLD, &action, nullptr) != 0) return 2;
  print_wait("before the first call");
  print_compute("begin", 0);
  print_wait("behind work");
  leave_running();
  print_wait("while kernels run");
  const timespec quarter = {0, 250'000'000};
  nanosleep(&quarter, nullptr);
  print_wait("later");
  CHECK(cudaDeviceSynchronize());
  std::printf("signals %d\n", static_cast<int>(signals));

  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) _exit(9);
  int status = 0;
  pid_t got;
  do got = wait(&status);
  while (got == -1 && errno == EINTR);
  std::printf("wait: %s, status %d\n", got == child ? "the child" : "ANOTHER", WEXITSTATUS(status));
  std::printf("signals %d\n", static_cast<int>(signals));
  print_compute("end", 1);
  print_wait("at the end");
  return 0;
}
