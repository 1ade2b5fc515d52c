// ioctl as a program has it: on pipes and what is no terminal, with no argument, from many threads, in a signal handler
// and in a child. Prints one line a case; compared with and without libgpuslice in front.
#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <thread>
#include <vector>

namespace {

volatile int g_in_handler = -1;
int g_pipe[2];

void handler(int) {
  const int before = errno;
  int waiting = 0;
  g_in_handler = ioctl(g_pipe[0], FIONREAD, &waiting) == 0 ? waiting : -2;
  errno = before;
}

template <class... Argument>
void show(const char* what, int fd, unsigned long request, Argument... argument) {
  errno = 77;
  const int result = ioctl(fd, request, argument...);
  std::printf("%s: %d, errno %d\n", what, result, errno);
}

int waiting_in(int fd) {
  int waiting = -1;
  return ioctl(fd, FIONREAD, &waiting) == 0 ? waiting : -1;
}

/// Makes many calls at once, each thread on a pipe of its own; true if all were right.
bool threads() {
  std::vector<std::thread> all;
  std::vector<int> wrong(8, 0);
  for (std::size_t i = 0; i < wrong.size(); ++i) {
    all.emplace_back([&wrong, i] {
      int ends[2];
      char bytes[16] = {};
      if (pipe(ends) != 0 || write(ends[1], bytes, i + 1) != static_cast<ssize_t>(i + 1)) wrong[i] = 1;
      for (int n = 0; n < 2000; ++n) {
        wrong[i] += waiting_in(ends[0]) != static_cast<int>(i + 1);
        winsize size;
        errno = 0;
        wrong[i] += ioctl(ends[0], TIOCGWINSZ, &size) != -1 || errno != ENOTTY;
      }
      close(ends[0]);
      close(ends[1]);
    });
  }
  for (std::thread& thread : all) thread.join();
  for (const int count : wrong) {
    if (count != 0) return false;
  }
  return true;
}

}  // namespace

int main() {
  if (pipe(g_pipe) != 0 || write(g_pipe[1], "12345", 5) != 5) return 1;
  winsize size;
  int on = 1;
  show("TIOCGWINSZ of a pipe", g_pipe[0], TIOCGWINSZ, &size);
  show("FIONBIO", g_pipe[1], FIONBIO, &on);
  std::printf("non-blocking: %d\n", (fcntl(g_pipe[1], F_GETFL) & O_NONBLOCK) != 0);
  show("FIOCLEX, which has no argument", g_pipe[1], FIOCLEX);
  std::printf("close-on-exec: %d\n", (fcntl(g_pipe[1], F_GETFD) & FD_CLOEXEC) != 0);
  show("no descriptor", -1, FIONREAD, &on);
  show("a bad address", g_pipe[0], FIONREAD, nullptr);
  std::printf("FIONREAD: %d\n", waiting_in(g_pipe[0]));

  // Requests that have the numbers of the driver's, on what is not the driver's; nothing may read the argument.
  for (const unsigned long request : {0xc0104629ul, 0xc020462aul, 0xc020462bul, 0xc030462bul, 0xffffffffc020462bul}) {
    show("the driver's request on a pipe", g_pipe[0], request, nullptr);
    show("the driver's request on /dev/null", open("/dev/null", O_RDWR), request, reinterpret_cast<void*>(16));
  }

  struct sigaction action {};
  action.sa_handler = handler;
  sigaction(SIGUSR1, &action, nullptr);
  errno = 77;
  raise(SIGUSR1);
  std::printf("in a handler: %d, errno %d\n", g_in_handler, errno);
  std::printf("threads: %s\n", threads() ? "right" : "wrong");
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    show("in a child", g_pipe[0], TIOCGWINSZ, &size);
    std::printf("FIONREAD in a child: %d, threads: %s\n", waiting_in(g_pipe[0]), threads() ? "right" : "wrong");
    std::fflush(stdout);
    _exit(0);
  }
  int status = 1;
  waitpid(child, &status, 0);
  std::printf("the child: %d\n", status);
  return 0;
}
