// What a context tells the daemon through the stub page: how much work it has and, for policies for jobs
// (Grant::jobs), which launch is its head now (ipc::Head).
//
// A client is one job on a device: its oldest outstanding launch there, in whichever stream. The grant belongs to the
// client, so launches in its other streams share the SMs that the head is given. A launch in original form is a job
// too, as far as it is known which of those is the oldest (opaque.h).
#pragma once

#include <atomic>
#include <cstdint>

#include "libgpuslice/client/grant_view.h"
#include "libgpuslice/launch/launch_book.h"
#include "libgpuslice/launch/opaque_work.h"

namespace gpuslice {

/// The caller holds the book's mutex, except where said.
class UsagePublisher {
 public:
  /// All three outlive this object.
  UsagePublisher(const GrantView& view, LaunchBook& book, const OpaqueWork& opaque)
      : view_(view), book_(book), opaque_(opaque) {}

  /// Writes the demand, and wakes the daemon if it must know of it now.
  void publish();
  /// Nothing is managed any more. Needs no mutex.
  void withdraw();
  /// The daemon has another stub page, which shows nothing yet.
  void forget_told();

  /// Counts one launch, of a kernel or a graph, that goes to the driver unchanged. Needs no mutex.
  void count_original_launch() { original_launches_.fetch_add(1, std::memory_order_relaxed); }
  /// Returns how many were counted since the last call. Needs no mutex.
  std::uint32_t take_original_launches();

 private:
  bool tell_head(std::uint32_t wanted);

  const GrantView& view_;
  LaunchBook& book_;
  const OpaqueWork& opaque_;
  std::uint32_t told_demand_ = 0;
  std::uint32_t told_part_ = 0;  ///< the grant at which it last told the daemon that it began with a part of the GPU
  std::uint64_t told_head_ = 0;  ///< ipc::Head::launch as last written
  /// OpaqueJob::issued_ns of the launch in original form that was last the head ...
  std::uint64_t told_opaque_ns_ = 0;
  std::uint64_t told_opaque_ = 0;                    ///< ... and the number that the head was given
  std::atomic<std::uint32_t> original_launches_{0};  ///< launches in original form that Usage does not count yet
};

}  // namespace gpuslice
