// What becomes of programs that use a GPU without the library, for whom it is mandatory. Pure.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "gpuctld/host/gpu_users.h"

namespace gpuctl::daemon {

/// How long after such a program was seen it is ended. It had been seen twice then, 5 seconds apart: what starts up
/// and gets the library later, as by CUDA's injection, has it by now.
inline constexpr std::chrono::nanoseconds kMandatoryPatience = std::chrono::seconds(10);
/// How long it may take to end after SIGTERM; it may have something to save.
inline constexpr std::chrono::milliseconds kMandatoryTimeout{10'000};

/// As it was seen so far.
struct Unmanaged {
  GpuUser user;
  std::uint64_t since_ns = 0;  ///< when it was seen first; 0: just now
  std::string mandatory;       ///< what names it (sched::mandatory_for); "": nothing
  bool told = false;           ///< whoever listens was
  bool ended = false;          ///< it was, or that was tried in vain
};

/// The program, with what is known of it from `before`. Its name, its control group and its user may be other ones at
/// each look, as it likes. One that runs as another user now is ended anew.
inline Unmanaged as_seen(const std::vector<Unmanaged>& before, GpuUser user) {
  const auto known = std::ranges::find_if(before, [&](const Unmanaged& one) { return same_process(one.user, user); });
  Unmanaged program = known != before.end() ? *known : Unmanaged();
  program.ended = program.ended && program.user.uid == user.uid;
  program.user = std::move(user);
  return program;
}

enum class UnmanagedStep {
  leave,  ///< nothing more is done
  wait,   ///< for its time
  end,
};

/// Who did perhaps only inherit the device is left.
inline UnmanagedStep next_step(const Unmanaged& program, std::uint64_t now_ns) {
  if (program.mandatory.empty() || !program.user.driver || program.ended) return UnmanagedStep::leave;
  const bool due = now_ns >= program.since_ns + static_cast<std::uint64_t>(kMandatoryPatience.count());
  return due ? UnmanagedStep::end : UnmanagedStep::wait;
}

}  // namespace gpuctl::daemon
