// Makes profiles of kernels from launches that Record streams.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "ipc/types.h"

namespace gpuctl::cli {

/// One thread.
class ProfileBuilder {
 public:
  /// An earlier profile, to which the launches are added.
  explicit ProfileBuilder(std::vector<ipc::KernelProfile> earlier = {});

  /// `whole`: the program had as many SMs as it ever gets, so the launch says how long it takes alone.
  void add(const ipc::Launch& launch, bool whole);
  /// What the daemon knows of kernels at the end: their names, which launches of new kernels lack, and what evicting
  /// them costs.
  void add(const std::vector<ipc::KernelDurations>& known);

  /// By name. At most ipc::kMostProfileInputs shapes of a kernel, the most launched ones.
  std::vector<ipc::KernelProfile> finish() const;
  /// Kernels that no name was found for, so that they are not in the profile.
  std::size_t nameless() const;

 private:
  struct Mean {
    std::int64_t count = 0;
    double value = 0;
    void add(double more, std::int64_t times = 1) {
      count += times;
      value += (more - value) * static_cast<double>(times) / static_cast<double>(count);
    }
  };
  /// Blocks, threads, dynamic shared memory and input.
  using Shape = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t>;
  struct Kernel {
    std::string name, module;
    double evict_us = 0;
    Mean task;
    std::map<Shape, Mean> whole, part;             ///< how long launches take alone
    std::map<std::int64_t, Mean> curve, confined;  ///< time for each block-task; of launches in original form
  };
  static ipc::KernelProfile profile_of(const Kernel& kernel);
  void merge(Kernel& into, const Kernel& kernel) const;

  std::map<std::pair<std::string, std::string>, Kernel> earlier_;  ///< by module and name
  std::map<std::string, Kernel> kernels_;                          ///< by key
};

}  // namespace gpuctl::cli
