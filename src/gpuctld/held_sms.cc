#include "gpuctld/held_sms.h"

namespace gpuctl::daemon {

void HeldSms::wrote(const SmSet& before, const SmSet& after, std::uint32_t epoch, std::uint64_t now_ns) {
  const bool shrinks = !(before - after).empty();
  if (shrinks) latest_ = {epoch, now_ns};
  if (pending_) {
    held_ |= after;
    later_ |= after;
  } else if (shrinks) {
    pending_ = true;
    oldest_ = latest_;
    held_ = before | after;
    later_ = after;
  }
}

bool HeldSms::heard(std::uint32_t applied, std::uint32_t epoch, const SmSet& written) {
  const std::uint32_t behind = epoch - applied;
  const auto reached = [&](const Shrink& shrink) { return behind <= epoch - shrink.epoch; };
  if (!pending_ || behind >= 0x80000000u || !reached(oldest_)) return false;
  if (reached(latest_)) {
    pending_ = false;
    held_ = later_ = {};
  } else {
    oldest_ = latest_;
    held_ = later_;
    later_ = written;  // since the latest shrink the grant only grew
  }
  return true;
}

}  // namespace gpuctl::daemon
