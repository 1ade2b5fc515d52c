#include "gpuctld/clients/held_capsm.h"

#include <algorithm>

namespace gpuctl::daemon {

void HeldCapsm::wrote(std::uint32_t before, std::uint32_t after, std::uint32_t epoch, std::uint64_t now_ns) {
  const bool shrinks = after < before;
  if (shrinks) latest_ = {epoch, now_ns};
  if (pending_) {
    held_ = std::max(held_, after);
    later_ = std::max(later_, after);
  } else if (shrinks) {
    pending_ = true;
    oldest_ = latest_;
    held_ = before;
    later_ = after;
  }
}

bool HeldCapsm::heard(std::uint32_t applied, std::uint32_t epoch, std::uint32_t written) {
  const std::uint32_t behind = epoch - applied;
  const auto reached = [&](const Shrink& shrink) { return behind <= epoch - shrink.epoch; };
  if (!pending_ || behind >= 0x80000000u || !reached(oldest_)) return false;
  if (reached(latest_)) {
    pending_ = false;
    held_ = later_ = 0;
  } else {
    oldest_ = latest_;
    held_ = later_;
    later_ = written;  // the grant only grew since the latest shrink
  }
  return true;
}

}  // namespace gpuctl::daemon
