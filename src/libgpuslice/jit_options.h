// What the driver is told about rewritten PTX: the program's own options, the register limit that is recorded with the
// PTX, and how many threads may compile it.
//
// Compiling is what a program's first start takes longer with (docs/architecture.md). Several threads make the same machine
// code as one, each kernel by itself.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <vector>

namespace gpuslice {

/// CU_JIT_SPLIT_COMPILE, of CUDA 13.0: older headers lack it, older drivers refuse it.
inline constexpr CUjit_option kCompileThreads = static_cast<CUjit_option>(34);

/// Threads that compiling so much PTX is worth; 1: leave it to the driver. `driver_version` as cuDriverGetVersion() gives it, `cpus`:
/// those that the process may use.
unsigned compile_threads(int driver_version, std::size_t text_bytes, unsigned cpus);

/// Of one that says where messages go, or how images are chosen: the code that is made is the same with it.
bool leaves_code_alone(CUjit_option option);

class JitOptions {
 public:
  /// `given` and `values`, `count` each, are the program's; both may be null. `max_registers`: 0 = no limit. What the program says
  /// itself comes first.
  JitOptions(const CUjit_option* given, void** values, unsigned count, int max_registers, unsigned threads);

  unsigned count() const { return static_cast<unsigned>(names_.size()); }
  CUjit_option* names() { return names_.data(); }
  void** values() { return values_.data(); }

  /// Leaves the number of threads to the driver; false if it was left to it already.
  bool drop_threads();

  /// Hands the program what the driver answered in the values of its options: lengths of logs, times.
  void give_back() const;

 private:
  bool has(CUjit_option name) const;

  std::vector<CUjit_option> names_;
  std::vector<void*> values_;
  void** given_values_ = nullptr;
  std::size_t given_ = 0;
  bool threads_ = false;  ///< the last option is ours
};

/// Whether `attempt()`, which loads with these options, succeeds: with the threads, or else without, should it be them that the
/// driver refuses. Then the program has been handed the driver's answers.
template <class Attempt>
bool attempt_load(JitOptions& options, Attempt attempt) {
  do {
    if (!attempt()) continue;
    options.give_back();
    return true;
  } while (options.drop_threads());
  return false;
}

}  // namespace gpuslice
