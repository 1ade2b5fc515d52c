// What the daemon currently grants this process on one device. Any thread; no call blocks.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "ipc/stub.h"

namespace gpuslice {

class GrantView {
 public:
  /// `device_index`: in the driver's order. `sms`: SMs of the device, as the driver says: fewer than it has where MPS
  /// keeps the program to a part of them. Blocks of the program are on no more at once, and %smid is below that number.
  GrantView(int device_index, std::uint32_t sms) : device_index_(device_index), sms_(sms) {}

  int device_index() const { return device_index_; }
  std::uint32_t sms() const { return sms_; }

  /// How many SMs this client may use here now.
  std::uint32_t granted() const;
  /// SMs that no client uses and that this client may not use. Some workers of a new grid land there, and leave.
  std::uint32_t idle_sms() const;
  /// SMs that its slice always has, whatever other slices do.
  std::uint32_t reserve() const;
  /// kNoJobs, kReportJobs or kReportEachJob; kNoJobs without a daemon.
  std::uint32_t jobs() const;
  /// Whether its SMs may be lent to others until it reports that it has work.
  bool tells_work() const;
  /// Whether no other client is on the GPU, so that it may have all SMs.
  bool alone() const;
  /// How its kernels run; Mode::workers without a daemon.
  gpuctl::ipc::Mode mode() const;
  /// How far ahead of the GPU a program may be with kernels that cannot be evicted because its grant is settled
  /// (ipc::kSettled); 0: the grant may shrink at any time.
  std::chrono::milliseconds ahead_when_settled() const;
  /// The SMs of kernels that are confined by SM number. All of the device's: they are not confined.
  struct Part {
    std::uint32_t first = 0;  ///< it may be any of the device's
    std::uint32_t count = 0;
    bool common = false;  ///< the client has them in common with others
    bool pairs = false;   ///< made of pairs of SMs (pair_choice.h); part() leaves it to its caller
    bool operator==(const Part&) const = default;
  };
  /// What is granted, or what the client has in common with others (ipc::is_in_common).
  Part part() const;

  /// What all of the above follows from, as far as the daemon decided it: unchanged as long as this is.
  struct Version {
    const gpuctl::ipc::Stub* page = nullptr;
    std::uint32_t epoch = 0, granted = 0, guaranteed = 0;
    bool operator==(const Version&) const = default;
  };
  /// Without a daemon, page is null.
  Version version() const;

  /// Where the client writes its usage; null: no daemon.
  gpuctl::ipc::Usage* usage() const;
  /// And where LatencyCounts::original. Not null where usage() is not.
  std::uint32_t* original() const;

  /// What workers poll: in a stub page, or in our own memory. Null before the agent has begun.
  gpuctl::Polled* polled() const { return polled_.load(std::memory_order_acquire); }
  void set_polled(gpuctl::Polled* polled) { polled_.store(polled, std::memory_order_release); }

 private:
  const gpuctl::ipc::Grant* grant() const;  ///< null: no daemon

  const int device_index_;
  const std::uint32_t sms_;
  std::atomic<gpuctl::Polled*> polled_{nullptr};
};

}  // namespace gpuslice
