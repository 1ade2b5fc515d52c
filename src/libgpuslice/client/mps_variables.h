// What the driver finds in the environment while it initialises under MPS, as gpuctld wants it (GetMpsPercentage of
// io.gpuctl):
//
// - CUDA_MPS_ACTIVE_THREAD_PERCENTAGE. The program is then never on more than that part of the SMs at once. gpuctld
//   says which part is enough for what the slice may ever have, if that has a reserve.
// - CUDA_DEVICE_MAX_CONNECTIONS. The program then has so many hardware queues. gpuctld hands them out, since MPS has
//   few: a program that finds none left does not start.
// - CUDA_MPS_PIPE_DIRECTORY: where gpuctld's own MPS is, unless the program has that variable, or a tool or a debugger
//   looks at it. For a program of an isolated slice, in any case: where its slice's MPS is, or a directory that does
//   not exist. The driver then finds no MPS, and makes a context of the program's own.
// - CUDA_VISIBLE_DEVICES, where the slice or one above it names devices: those of them that the program wants to see.
#pragma once

#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "libgpuslice/client/client.h"

namespace gpuslice {

/// What the percentage is to be; none: it stays as it is. `wanted`: in hundredths of a percent. `own`: what the program
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

/// While it lives the variables are set. Then they are as they were before, so that a child of the program asks anew,
/// for its own slice. Made around the driver's cuInit, once in a process: later ones do nothing, unless gpuctld refused
/// the program.
///
/// It waits for gpuctld for Client::kLongestAnswer at most; without an answer nothing is set. A thread that reads the
/// environment meanwhile may see either value, as with any setenv.
class MpsVariables {
 public:
  MpsVariables() noexcept;
  ~MpsVariables();
  MpsVariables(const MpsVariables&) = delete;
  MpsVariables& operator=(const MpsVariables&) = delete;

  /// Whether it has asked gpuctld: Client::keep_no_promise() is to follow.
  bool asked() const { return asked_; }
  /// Whether gpuctld said that the program is not to start, being in no slice. The driver stays as it is then.
  bool refused() const { return refused_; }

 private:
  struct Variable {
    const char* name;
    bool set = false;
    std::optional<std::string> before;
    void set_to(const std::string& text);
    void restore();
  };
  void begin();
  void find_mps(const Client::MpsStart& start);
  void keep_to(unsigned hundredths);
  void take_queues(unsigned queues);

  void see_only(const std::vector<gpuctl::SliceGpu>& gpus);

  Variable percentage_, queues_, pipe_directory_, devices_;
  bool asked_ = false, refused_ = false;
};

/// Once the driver is initialised: tells the client whether the program is where gpuctld wanted it: in no MPS, or in
/// that of gpuctld. If the driver has found one, or none, all the same, the program is as any other.
void note_isolation();

/// How many SMs the driver says that each of the program's `count` devices has, if gpuctld wanted MPS to keep the
/// program to a percentage. Else none.
std::vector<int> sms_kept_by_mps(int count);

}  // namespace gpuslice
