// Runs random modules and tells what memory they leave behind.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "generate.h"

namespace gpuctl::random_kernels {

/// Opens the first GPU of the process's CUDA driver. Used by one thread; every member throws bench::Failure.
class Runner {
 public:
  explicit Runner(Calls calls);

  /// Called with the name of a kernel and a hash of all memory it could have written: the same whenever it runs right.
  using Found = std::function<void(const std::string& kernel, std::uint64_t hash)>;

  /// Runs each kernel by itself, then all of them twice over, one behind the other in a stream ("together").
  /// Modules of even seeds stay loaded, for whoever wants to know afterwards how their kernels ran.
  void run(std::uint64_t seed, const Found& found);
  /// Runs the polling kernel of the seed, with as many blocks as the GPU holds for sure, and then its twin.
  void run_polling(std::uint64_t seed, const Found& found);

 private:
  struct Loaded {
    CUmodule module = nullptr;
    CUdeviceptr tally = 0;
    std::vector<CUfunction> functions;
  };

  Loaded load(const RandomModule& module) const;
  void fill(const Loaded& loaded);
  void launch(CUfunction function, const KernelShape& shape, bool packed) const;
  std::uint64_t hash(const Loaded& loaded);

  const Calls calls_;
  CUstream stream_ = nullptr;
  CUdeviceptr memory_ = 0;           ///< sums, input, cells
  std::size_t words_ = 0;            ///< of it
  std::size_t used_ = 0;             ///< words that this module uses
  std::vector<std::uint32_t> fill_;  ///< what it holds before a kernel
  std::vector<std::uint32_t> read_;
};

}  // namespace gpuctl::random_kernels
