// What is known of a context's launches in original form: how many SMs those on the GPU could fill, and which of them
// is the job that policies for jobs see.
#pragma once

#include <atomic>
#include <cstdint>

#include "libgpuslice/streams/opaque.h"

namespace gpuslice {

/// The caller holds the book's mutex, except where said.
class OpaqueWork {
 public:
  using Waiting = Opaque::Owner::Waiting;

  /// A launch of so many blocks is about to begin, and none was on the GPU. `sms`: SMs of the device. `waits`: for a
  /// grant first.
  void begin(std::uint64_t blocks, std::uint32_t sms, const OpaqueJob& job, bool waits = false);
  void enter_gate(Waiting& one);
  /// The launch that passes the gate counts as the job until the agent knows better.
  void leave_gate(Waiting& one);

  /// SMs that these launches could fill, as known at the latest look.
  std::uint32_t demand() const { return demand_; }
  /// The same of those that do not wait for a grant.
  std::uint32_t running() const { return running_; }
  /// The launch that has waited longest for a grant, else the job on the GPU; null: there is neither.
  const OpaqueJob* job() const;
  /// Whether no such launch is known to be on the GPU. Needs no mutex. The agent clears `busy` while it looks; then the
  /// demand still shows them.
  bool none() const { return demand_ == 0 && !busy_.load(); }

  // What follows is for the agent alone. All but note() needs no mutex.

  bool busy() const { return busy_.load(); }
  /// Between these two the agent asks the driver. A thread that launches after begin_look() sets `busy` again.
  void begin_look() { busy_.store(false); }
  void end_look(std::uint32_t demand) {
    if (demand > 0) busy_.store(true);
  }
  /// Takes over what the look showed. Returns whether anything that the daemon is told of changed.
  bool note(std::uint32_t demand, const Opaque::Look& look);

 private:
  std::atomic<bool> busy_{false};  ///< such launches may be on the GPU
  std::atomic<std::uint32_t> demand_ = 0;
  std::uint32_t running_ = 0;
  OpaqueJob job_;               ///< of those on the GPU
  Waiting* at_gate_ = nullptr;  ///< the launch that has waited longest; the others follow in its list
};

}  // namespace gpuslice
