#include "sched/predictor/left_out_error.h"

#include <algorithm>
#include <cmath>

namespace gpuctl::sched {

void learn(DurationModel& model, const Sample& sample) {
  for (std::uint64_t i = 0; i < std::min(sample.launches, kMostTimesLearnt); ++i)
    model.learn(sample.shape, sample.duration);
}

std::optional<double> left_out_error(std::span<const Sample> samples, const ModelFactory& factory) {
  if (samples.size() < 3) return std::nullopt;
  double sum = 0;
  for (const Sample& left_out : samples) {
    const std::unique_ptr<DurationModel> model = factory();
    for (const Sample& sample : samples)
      if (&sample != &left_out) learn(*model, sample);
    const auto measured = static_cast<double>(std::max(left_out.duration, Time{1}).count());
    const auto predicted = static_cast<double>(model->predict(left_out.shape).value_or(Time{0}).count());
    sum += std::abs(predicted - measured) / measured;
  }
  return sum / static_cast<double>(samples.size());
}

}  // namespace gpuctl::sched
