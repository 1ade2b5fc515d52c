// Where the programs of a slice with a target run, if its isolation is "auto": in a context that they share with those
// of others, or apart. By what was measured at earlier starts, else by what the kernels of others are. Pure.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace gpuctl::sched {

/// What a program's bursts took while others had work.
struct MeasuredIsolation {
  std::uint64_t bursts = 0;
  std::chrono::nanoseconds p99{};
  double others_per_s = 0;  ///< launches of the others meanwhile

  bool operator==(const MeasuredIsolation&) const = default;
};

/// A program, shared and isolated; none: not known yet.
struct MeasuredProgram {
  std::optional<MeasuredIsolation> shared, isolated;
  bool operator==(const MeasuredProgram&) const = default;
};

/// Kernels of others that last longer on the average: whoever shares the GPU with these may wait for their blocks.
inline constexpr std::chrono::microseconds kLongKernel{2000};

struct IsolationEvidence {
  bool has_target = false;
  std::chrono::nanoseconds at_most{};  ///< the target; 0: not known yet
  MeasuredProgram measured;            ///< of the slice's latest program
  bool others_are_long = false;        ///< kLongKernel
};

struct IsolationChoice {
  enum class Why : std::uint8_t {
    no_target,
    lower_p99,       ///< both were measured
    others_do_more,  ///< both were measured, and are about the same
    meets_target,    ///< the other one is not known, nor needed
    to_be_tried,     ///< the other one misses the target
    long_kernels,
    nothing_known,
  };
  bool isolated = false;
  Why why = Why::nothing_known;

  bool operator==(const IsolationChoice&) const = default;
};

IsolationChoice choose_isolation(const IsolationEvidence& evidence);

/// For people: "isolated: p99 3.1 ms, shared 5.6 ms".
std::string words(const IsolationChoice& choice, const IsolationEvidence& evidence);

}  // namespace gpuctl::sched
