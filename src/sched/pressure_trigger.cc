#include "sched/pressure_trigger.h"

#include <cmath>

namespace gpuctl::sched {

bool PressureTrigger::passed(Nanoseconds total, Nanoseconds now) {
  if (!began_) began_ = now, total_then_ = total;
  const Nanoseconds time = now - *began_;
  stalled_ = total - total_then_;
  const double windows = static_cast<double>(time.count()) / static_cast<double>(window_.count());
  const auto times = [](Nanoseconds of, double part) {
    return Nanoseconds(std::llround(static_cast<double>(of.count()) * part));
  };
  if (windows >= 1) {
    before_ = stalled_ = times(stalled_, 1 / windows);
    began_ = now, total_then_ = total;
  } else {
    stalled_ += times(before_, 1 - windows);
  }
  if (stalled_ < most_ || (told_ && now < *told_ + window_)) return false;
  told_ = now;
  return true;
}

}  // namespace gpuctl::sched
