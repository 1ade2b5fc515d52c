#include "kernels/timing/priority_hints.h"

#include <dlfcn.h>

#include <string>

#include "kernels/run/driver.h"

namespace gpuctl::bench {

PriorityHints::PriorityHints(int least, int greatest, std::uint64_t seed)
    : set_(reinterpret_cast<int (*)(int)>(dlsym(RTLD_DEFAULT, "gpuslice_set_priority_hint"))),
      least_(least),
      count_(static_cast<std::uint32_t>(greatest - least) + 1),
      random_(seed) {
  if (set_ == nullptr) throw Failure("--hints: this program runs in no slice");
}

int PriorityHints::give() {
  const int hint = least_ + static_cast<int>(random_.below(count_));
  if (const int error = set_(hint); error != 0) {
    throw Failure("--hints: " + std::to_string(hint) + " is refused, error " + std::to_string(error));
  }
  return hint;
}

}  // namespace gpuctl::bench
