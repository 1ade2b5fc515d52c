// Green contexts: parts of a GPU's SMs in which streams can be made (CUDA 12.4 and later).
//
// Measured on an H200: SMs come in groups of eight, and what is left over belongs to the last one; kernels of the
// primary context run there as they are, under MPS too; making one takes 1 ms and 6 MB, and blocks until the device is
// idle. A GPU of fewer than 64 SMs is divided into eight groups, or as many as the driver makes of it.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

namespace gpuslice {

class GreenContexts {
 public:
  /// A part of the GPU; null `stream` where there is none, for which `none` says why.
  struct Confined {
    CUstream stream = nullptr;
    std::uint32_t sms = 0;
    const char* none = nullptr;
  };
  /// A stream confined to about `count` SMs from number `first` on, of the priority of `like`; calls with the same
  /// `lane` get the same stream. None with fewer than `least` SMs. Blocks until the device is idle when the part is
  /// new. The context must be current. Any thread.
  Confined stream(std::uint32_t first, std::uint32_t count, std::uint32_t least, CUstream like, const void* lane);
  /// Its streams will not be asked for again.
  void forget(const void* lane);
  /// Waits for what runs in them and gives up all parts, which hold the primary context; they are made anew where they
  /// are asked for.
  void give_up();

 private:
  struct Part {
    CUgreenCtx context = nullptr;
    std::map<std::pair<const void*, int>, CUstream> streams;
  };

  bool divide();
  Part& part(std::uint32_t begin, std::uint32_t end);

  std::mutex mutex_;
  bool divided_ = false;
  std::vector<CUdevResource> groups_;  ///< the last one may be of another size
  std::vector<std::uint32_t> starts_;  ///< by group: SMs before it; one more entry than groups
  std::map<std::pair<std::uint32_t, std::uint32_t>, Part> parts_;  ///< by first group and the one behind the last
};

}  // namespace gpuslice
