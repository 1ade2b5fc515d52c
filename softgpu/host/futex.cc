#include "softgpu/host/futex.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>

namespace gpuctl::softgpu {

void futex_wait(const std::atomic<std::uint32_t>& word, std::uint32_t seen, std::chrono::nanoseconds timeout) {
  const timespec relative{static_cast<time_t>(timeout.count() / 1'000'000'000), timeout.count() % 1'000'000'000};
  syscall(SYS_futex, &word, FUTEX_WAIT, seen, &relative, nullptr, 0);
}

void futex_wake(std::atomic<std::uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace gpuctl::softgpu
