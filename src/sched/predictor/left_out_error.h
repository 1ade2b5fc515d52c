// How far off a duration model is for inputs that it has not seen (FLEP 6.1, Figure 7).
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <span>

#include "sched/predictor/ridge.h"

namespace gpuctl::sched {

/// Launches of one shape: their mean duration alone on the whole device.
struct Sample {
  LaunchShape shape;
  Time duration{};
  std::uint64_t launches = 1;
};

/// Of launches as a profile has them: an Input has `blocks`, `threads`, `input_bytes`, `shared_bytes`, `alone_us` and
/// `launches`, all numbers (ipc::ProfileInput).
template <class Input>
Sample sample_of(const Input& input) {
  return {.shape = {.blocks = static_cast<double>(input.blocks),
                    .threads = static_cast<double>(input.threads),
                    .input_bytes = static_cast<double>(input.input_bytes),
                    .shared_bytes = static_cast<double>(input.shared_bytes)},
          .duration = Time{std::llround(input.alone_us * 1000)},
          .launches = static_cast<std::uint64_t>(input.launches)};
}

/// So many launches of a sample are learnt at most, so that a shape that is launched often does not outweigh the
/// others.
inline constexpr std::uint64_t kMostTimesLearnt = 10;

/// The model learns the sample.
void learn(DurationModel& model, const Sample& sample);

/// The mean over the samples of |predicted - measured| / measured, each predicted by a model that learnt all the others
/// (leave-one-out). Empty for fewer than three samples: of two, each would be predicted to be as long as the other.
/// Takes time in proportion to the square of their number.
std::optional<double> left_out_error(std::span<const Sample> samples, const ModelFactory& factory = make_ridge_model);

}  // namespace gpuctl::sched
