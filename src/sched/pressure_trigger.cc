#include "sched/pressure_trigger.h"

namespace gpuctl::sched {

bool PressureTrigger::passed(Nanoseconds total, Nanoseconds now) {
  if (!began_) began_ = now, total_then_ = total;
  const Nanoseconds time = now - *began_;
  stalled_ = total - total_then_;
  if (time >= window_) {
    before_ = stalled_;
    began_ = now, total_then_ = total;
  } else {
    const double part = static_cast<double>((window_ - time).count()) / static_cast<double>(window_.count());
    stalled_ += Nanoseconds(static_cast<std::int64_t>(part * static_cast<double>(before_.count())));
  }
  if (stalled_ < most_ || (told_ && now < *told_ + window_)) return false;
  told_ = now;
  return true;
}

}  // namespace gpuctl::sched
