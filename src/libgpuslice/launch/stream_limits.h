// How the streams of a context share its grant: each stream has a limit, which its workers read from the same page as
// the grant.
#pragma once

#include <cuda.h>

#include <array>
#include <cstdint>

#include "ipc/stub.h"
#include "libgpuslice/client/grant_view.h"
#include "libgpuslice/launch/launch_book.h"

namespace gpuslice {

/// The caller holds the book's mutex.
class StreamLimits {
 public:
  /// `view` and `book` outlive this object.
  StreamLimits(const GrantView& view, const LaunchBook& book) : view_(view), book_(book) {
    limits_.fill(gpuctl::kNoLimit);
  }

  /// For a stream that is about to have outstanding launches. If there are more such streams than limits, some streams
  /// have no limit of their own.
  void choose(Stream& stream) const;
  /// Divides the grant anew among the streams with outstanding launches.
  void divide();
  void divide_if_shared() {
    if (book_.active().size() > 1) divide();
  }
  /// The range of the granted SMs that this stream may use (gpuctl::pack_range).
  std::uint32_t allowed(const Stream& stream) const {
    return gpuctl::pack_range(view_.granted(), limits_[stream.limit]);
  }

  void write_to(gpuctl::Polled& polled) const;
  /// The GPU's address of what the workers of later launches poll: GrantView::polled().
  CUdeviceptr polled_address() const { return polled_address_; }
  void set_polled_address(CUdeviceptr address) { polled_address_ = address; }

 private:
  const GrantView& view_;
  const LaunchBook& book_;
  std::array<gpuctl::Polled::Limit, std::size(gpuctl::Polled{}.limits)> limits_;  ///< as written to GrantView::polled()
  CUdeviceptr polled_address_ = 0;
};

}  // namespace gpuslice
