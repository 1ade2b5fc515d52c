// compat: the ways a program ends while its kernels run: WAY MILLISECONDS
// args: return 40
// args: return 731
// args: exit 3
// args: exit 1210
// args: thread_exit 87
// args: thread_exit 1490
// args: _exit 155
// args: _exit 1003
// args: quick_exit 61
// args: quick_exit 905
// args: abort 349
// args: abort 1777
// args: raise 118
// args: raise 1333
// args: handler 27
// args: handler 1611
// args: kill 222
// args: kill 980
// soft: yes
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "mix.h"

namespace {

using Clock = std::chrono::steady_clock;

struct Work {
  int count, depth;
  unsigned* data[2];
  cudaStream_t streams[2];
};

/// Launches without an end, or until `end`; what a launch returns while another thread ends the program is not looked
/// at.
void launch_until(const Work& work, Clock::time_point end) {
  for (unsigned round = 0; Clock::now() < end; ++round) {
    for (int i = 0; i < 2; ++i)
      mix_kernel<<<blocks_for(work.count), 256, 0, work.streams[i]>>>(work.data[i], work.count, round, work.depth);
    if (cudaGetLastError() != cudaSuccess) break;
    if (round % 64 == 63) cudaStreamSynchronize(work.streams[0]);
  }
}

void ended(int) {
  _exit(7);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 64;
  const char* way = argv[1];
  const auto is = [way](const char* name) { return std::strcmp(way, name) == 0; };
  const Clock::time_point end = Clock::now() + std::chrono::milliseconds(std::atoi(argv[2]));
  const bool small = on_software();
  Work work{small ? 1024 : 1 << 20, small ? 4 : 1000, {}, {}};
  for (int i = 0; i < 2; ++i) {
    CHECK(cudaMalloc(&work.data[i], static_cast<std::size_t>(work.count) * sizeof(unsigned)));
    CHECK(cudaStreamCreateWithFlags(&work.streams[i], cudaStreamNonBlocking));
    number_kernel<<<blocks_for(work.count), 256, 0, work.streams[i]>>>(work.data[i], work.count);
  }
  for (unsigned round = 0; round < 5; ++round) launch_mix(work.data[0], work.count, round, work.depth, work.streams[0]);
  CHECK(cudaStreamSynchronize(work.streams[0]));
  checked_results("begun", work.data[0], work.count, 5, work.depth);
  std::printf("%s\n", way);
  std::fflush(stdout);

  if (is("handler")) signal(SIGTERM, ended);
  if (is("thread_exit") || is("handler") || is("kill")) {
    std::thread([&] {
      std::this_thread::sleep_until(end);
      if (is("thread_exit")) std::exit(5);
      ::kill(getpid(), is("kill") ? SIGKILL : SIGTERM);
    }).detach();
    launch_until(work, Clock::time_point::max());
    for (;;) pause();
  }
  launch_until(work, end);
  for (int i = 0; i < 2; ++i) launch_mix(work.data[i], work.count, 0, work.depth, work.streams[i]);
  if (is("exit")) std::exit(4);
  if (is("_exit")) _exit(6);
  if (is("quick_exit")) std::quick_exit(8);
  if (is("abort")) std::abort();
  if (is("raise")) raise(SIGTERM);
  return 0;
}
