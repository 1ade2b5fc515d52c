// Where the programs of a slice with a target run, if its isolation is "auto": in a context that they share with those
// of others, or apart. By what was measured at earlier starts; before that apart, since whoever shares a context may
// wait for the blocks of others for as long as these like. Pure.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace gpuctl::sched {

/// What a program's bursts took while others had work.
struct MeasuredIsolation {
  std::uint64_t bursts = 0;
  std::chrono::nanoseconds p99{};
  double others_per_s = 0;   ///< launches of the others meanwhile
  std::uint64_t others = 0;  ///< who they were: a number of kOthersBits

  bool operator==(const MeasuredIsolation&) const = default;
};

/// A program, shared and isolated; none: not known yet.
struct MeasuredProgram {
  std::optional<MeasuredIsolation> shared, isolated;
  bool operator==(const MeasuredProgram&) const = default;
};

/// A number in JSON is exact up to so many.
inline constexpr int kOthersBits = 53;

/// A target below it is for who shares: a turn of others has to end before an isolated program has its own. With the
/// shortest turns bursts of 0.09 ms had a p99 of 0.42 to 0.47 ms so, bursts of 0.35 ms one of 0.7 (measured, H200).
inline constexpr std::chrono::nanoseconds kLeastIsolated = std::chrono::microseconds{500};

/// So many slices are isolated at most without a measurement: each costs memory of the GPU, and a turn.
inline constexpr std::size_t kMostUnmeasured = 4;

struct IsolationEvidence {
  bool has_target = false;
  std::chrono::nanoseconds at_most{};  ///< the target; 0: not known yet
  MeasuredProgram measured;            ///< of the slice's latest program
  bool exclusive = false;              ///< a GPU lets one process use it at a time, so nobody can be apart
  std::size_t others_isolated = 0;     ///< other slices with programs apart
};

struct IsolationChoice {
  enum class Why : std::uint8_t {
    no_target,
    lower_p99,       ///< both were measured
    others_do_more,  ///< both were measured, and both meet the target or are about the same
    meets_target,    ///< the other one misses it, or is neither known nor needed
    to_be_tried,     ///< the other one misses the target
    misses_little,   ///< it is isolated, which is not so bad that shared would be tried
    nothing_known,
    short_target,   ///< nothing is known, and it is below kLeastIsolated
    many_isolated,  ///< nothing is known, and kMostUnmeasured others are apart
    exclusive,
  };
  bool isolated = false;
  Why why = Why::nothing_known;

  bool operator==(const IsolationChoice&) const = default;
};

IsolationChoice choose_isolation(const IsolationEvidence& evidence);

/// For people: "isolated: p99 3.1 ms, shared 5.6 ms".
std::string words(const IsolationChoice& choice, const IsolationEvidence& evidence);

}  // namespace gpuctl::sched
