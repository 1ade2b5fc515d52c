// %smid as a client of MPS sees it: not the name of an SM, but a number that counts the SMs on which this process has
// blocks now. An SM gets the lowest number not in use when the first block comes to it, and loses it with the last.
// (Seen on an H200: docs/engineering-notes.md, "Facts about the GPU".)
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace gpuctl::softgpu {

/// Not thread-safe.
class SmNumbers {
 public:
  explicit SmNumbers(std::uint32_t sms) : sms_(sms) {}

  /// One block of this process comes to the SM. Returns the SM's number.
  std::uint32_t enter(std::uint32_t sm) {
    if (sms_[sm].blocks++ == 0) {
      const auto in_use = [this](std::uint32_t number) {
        return std::any_of(sms_.begin(), sms_.end(),
                           [&](const Sm& other) { return other.named && other.number == number; });
      };
      std::uint32_t number = 0;
      while (in_use(number)) ++number;
      sms_[sm].number = number;
      sms_[sm].named = true;
    }
    return sms_[sm].number;
  }

  /// One block leaves it.
  void leave(std::uint32_t sm) {
    if (--sms_[sm].blocks == 0) sms_[sm].named = false;
  }

 private:
  struct Sm {
    std::uint32_t blocks = 0;
    std::uint32_t number = 0;
    bool named = false;
  };
  std::vector<Sm> sms_;
};

}  // namespace gpuctl::softgpu
