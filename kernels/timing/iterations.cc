#include "kernels/timing/iterations.h"

#include <algorithm>
#include <cmath>

#include "kernels/run/driver.h"

namespace gpuctl::bench {
namespace {

constexpr double kClearUs = 100;  // a difference this long does not come from the events' clock or a late launch
constexpr std::uint32_t kFirst = 8;
constexpr std::uint32_t kGrowth = 4;

std::uint32_t whole(double iterations) {
  return static_cast<std::uint32_t>(std::clamp(std::round(iterations), 1.0, double{kMostIterations}));
}

}  // namespace

// Near the fixed cost two times differ by noise alone, and a line through them says anything: their difference must be
// clear before it is used. A target beyond what was tried is then tried once, and the line drawn again through that.
std::uint32_t iterations_for(const std::function<double(std::uint32_t)>& measure, double target_us) {
  const double fixed_us = std::max(0.0, measure(1));
  if (fixed_us >= target_us) return 1;
  const double clear_us = std::max(fixed_us, kClearUs);
  std::uint32_t tried = kFirst;
  double more_us = measure(tried) - fixed_us;
  while (more_us < clear_us) {
    if (tried > kMostIterations / kGrowth) {
      throw Failure("calibration: " + std::to_string(tried) + " iterations take no longer than one");
    }
    tried *= kGrowth;
    more_us = measure(tried) - fixed_us;
  }
  const double wanted = 1 + (target_us - fixed_us) * (tried - 1) / more_us;
  const std::uint32_t first = whole(wanted);
  if (first <= tried) return first;
  const double first_us = measure(first) - fixed_us;
  const double correction = first_us > 0 ? (target_us - fixed_us) / first_us : 2.0;
  return whole(1 + (first - 1) * std::clamp(correction, 0.5, 2.0));
}

}  // namespace gpuctl::bench
