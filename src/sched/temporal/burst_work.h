// What a program has still to do behind the launch that is its job. To its user all launches of a burst are one
// application (libgpuslice/agent/burst.h). A policy that goes by durations would otherwise take a program of many short
// launches for a short one.
//
// How long a burst takes is learnt from earlier ones of the program, by the kernel that they began with. Of the first
// one nothing is known, nor of a program that never waits: their launches count one by one. Pure: time is an argument.
#pragma once

#include <array>
#include <cstdint>

#include "sched/instants.h"

namespace gpuctl::sched {

class BurstWork {
 public:
  /// A launch comes. `ended`: how many bursts of the program ended so far (ipc::LatencyCounts::bursts_ended); bursts
  /// that are so short that several ended since the launch before count alike. `kernel`: its hash; 0: unknown.
  void comes(std::uint32_t ended, std::uint64_t kernel);
  /// The program used the whole device for so long, or more of it for less.
  void used(Time time) { used_ += time; }
  /// For some time no launches are told of. Nothing is learnt of the burst that goes on now.
  void pause() { told_all_ = false; }
  /// What is expected behind a launch that takes so long. Short beside it: nothing, since both are estimates.
  Time behind(Time launch) const;

 private:
  struct Learnt {
    std::uint64_t kernel = 0;
    Time whole{};
  };
  /// Of bursts that begin with this kernel, or of the latest of any. Null: none ended yet.
  const Learnt* find(std::uint64_t kernel) const;
  void learn(Time whole);

  std::uint32_t ended_ = 0;
  bool begun_ = false, told_all_ = true;
  std::uint64_t first_ = 0;  ///< the kernel that the burst began with
  Time used_{};              ///< in this burst
  std::array<Learnt, 8> learnt_{};
  std::size_t latest_ = 0, next_ = 0;  ///< places in learnt_
};

}  // namespace gpuctl::sched
