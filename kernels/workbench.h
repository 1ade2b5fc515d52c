// One kernel with its problem on the GPU: inputs uploaded once, any number of outputs, each poisoned before a launch
// and compared with the CPU reference after it. Copies go through a stream of their own and pinned memory, so they
// use the copy engines and no SM.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gpu.h"
#include "kernel_table.h"

namespace gpuctl::bench {

class Workbench {
 public:
  /// Generates and uploads the inputs, makes `outputs` output buffers, none of them poisoned yet. `with_reference`:
  /// computes what the kernel must leave, needed by verify().
  Workbench(const KernelSpec& spec, const Extent& extent, std::uint64_t seed, std::size_t outputs, bool with_reference);

  const Problem& problem() const { return problem_; }
  /// Empty unless asked for.
  const Words& reference() const { return reference_; }
  CUdeviceptr output(std::size_t index) const { return outputs_[index].address(); }

  /// Copies words to the GPU; returns when they are there.
  void upload(const Words& words, CUdeviceptr to);

  /// Fills an output with the problem's poison; returns when it is in place. The output must not be in use.
  void poison(std::size_t output);

  /// Launches the kernel into an output and returns at once.
  void launch(std::size_t output, CUstream stream);

  /// Reads an output back, bit for bit: nothing when it is right, else one line about the first wrong word.
  /// The launch into it must be complete.
  std::optional<std::string> verify(std::size_t output);

  /// FNV-1a, 64 bits, of the memory that the last verify() read back.
  std::uint64_t hash_of_last() const;

 private:
  const KernelSpec& spec_;
  Problem problem_;
  Words reference_;
  CUfunction function_;
  Stream copies_{Priority::kHigh};
  std::vector<DeviceMemory> inputs_;
  std::vector<DeviceMemory> outputs_;
  PinnedWords pattern_;  ///< on the way to the GPU: poison, or a piece of an upload
  bool pattern_is_poison_ = false;
  PinnedWords readback_;
};

}  // namespace gpuctl::bench
