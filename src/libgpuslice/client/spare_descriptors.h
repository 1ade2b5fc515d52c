// Whether the program can spare the file descriptors that a client needs.
#pragma once

#include <fcntl.h>
#include <sys/resource.h>

#include <algorithm>

namespace gpuslice {

/// A client has two descriptors, and for a moment a few more. The last ones are the program's and the driver's.
inline constexpr int kSpareDescriptors = 16;

/// Whether so many more could be opened now. Opens none. Any thread.
inline bool descriptors_are_left(int wanted = kSpareDescriptors) {
  constexpr int kMostLooks = 4096;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return true;
  // The system gives the lowest number that is free, so the highest ones tell.
  const int end = static_cast<int>(std::min<rlim_t>(limit.rlim_cur, 1 << 30));
  int left = 0;
  for (int number = end - 1; number >= std::max(0, end - kMostLooks) && left < wanted; --number)
    left += fcntl(number, F_GETFD) < 0;
  return left == wanted;
}

}  // namespace gpuslice
