// For tests: a client's page as the GPU has it, whose memory stays the same whatever becomes of the file.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cstddef>

#include "ipc/stub_map.h"

namespace gpuctl::daemon {

/// A pipe holds the page's memory itself, not a copy.
class Pinned {
 public:
  explicit Pinned(const ipc::Stub* page) : held_(pipe()) {
    const iovec first{const_cast<ipc::Stub*>(page), kBytes};  // it is read
    EXPECT_EQ(::vmsplice(held_[1].get(), &first, 1, 0), static_cast<ssize_t>(kBytes));
  }

  /// Whether the grants of the device are open: whatever limits its streams have.
  bool open(std::size_t device) const {
    const Pipe again = pipe();
    EXPECT_EQ(::tee(held_[0].get(), again[1].get(), kBytes, 0), static_cast<ssize_t>(kBytes));
    alignas(ipc::Stub) std::array<std::byte, sizeof(ipc::Stub) + kBytes> bytes{};
    EXPECT_EQ(::read(again[0].get(), bytes.data(), kBytes), static_cast<ssize_t>(kBytes));
    const Polled& polled = reinterpret_cast<const ipc::Stub*>(bytes.data())->grant[device].polled;
    for (const Polled::Limit& limit : polled.limits)
      if (limit.first != kNoLimit.first || limit.last != kNoLimit.last) return false;
    return polled.capsm == ipc::kUnlimited;
  }

 private:
  static constexpr std::size_t kBytes = 4096;  // the grants are in the first page of memory
  using Pipe = std::array<ipc::UniqueFd, 2>;
  static Pipe pipe() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    return {ipc::UniqueFd(ends[0]), ipc::UniqueFd(ends[1])};
  }
  Pipe held_;
};

}  // namespace gpuctl::daemon
