// A limit that MPS itself keeps. Under MPS a program whose environment has CUDA_MPS_ACTIVE_THREAD_PERCENTAGE while the
// driver initialises is never on more than that part of the SMs at once. gpuctld says which part is enough for what the
// slice may ever have (GetMpsPercentage of io.gpuctl; limits_by_mps in gpuctl.toml).
#pragma once

#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

namespace gpuslice {

/// What the variable is to be; none: it stays as it is. `wanted`: in hundredths of a percent. `own`: what the program
/// was started with; null: nothing. It stays if it asks for no more, or if it is no number.
inline std::optional<std::string> percentage_to_set(const char* own, unsigned wanted) {
  if (own != nullptr) {
    char* end = nullptr;
    const double asked = std::strtod(own, &end);
    if (end == own || *end != '\0' || !(asked * 100 > wanted)) return std::nullopt;
  }
  const unsigned fraction = wanted % 100;
  return std::to_string(wanted / 100) + (fraction < 10 ? ".0" : ".") + std::to_string(fraction);
}

/// While it lives the variable is set as gpuctld wants it. Then it is as it was before, so that a child of the program
/// asks anew, for its own slice. Made around the driver's cuInit, once in a process: later ones do nothing.
///
/// It waits for gpuctld for Client::kLongestAnswer at most; without an answer nothing is set. A thread that reads the
/// environment meanwhile may see either value, as with any setenv.
class KeptByMps {
 public:
  KeptByMps() noexcept;
  ~KeptByMps();
  KeptByMps(const KeptByMps&) = delete;
  KeptByMps& operator=(const KeptByMps&) = delete;

 private:
  bool begin();

  bool set_ = false;
  std::optional<std::string> before_;
};

/// How many SMs the driver says that each of the program's `count` devices has, if gpuctld wanted MPS to keep the
/// program to a percentage. Else none.
std::vector<int> sms_kept_by_mps(int count);

}  // namespace gpuslice
