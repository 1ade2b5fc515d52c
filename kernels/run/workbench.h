// One kernel with its problem on the GPU: inputs uploaded once, any number of outputs, each poisoned before a run and
// compared with the CPU reference after it. A run launches the steps of the problem, mostly one, into one stream; it
// has scratch buffers of its own with its output. Copies go through a stream of their own and pinned memory, so they
// use the copy engines and no SM.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kernels/run/gpu.h"
#include "kernels/run/kernel_table.h"

namespace gpuctl::bench {

class Workbench {
 public:
  /// Generates and uploads the inputs, makes `outputs` output buffers, none of them poisoned yet. `with_reference`:
  /// computes what the kernel must leave, needed by verify().
  Workbench(const KernelSpec& spec, const Extent& extent, std::uint64_t seed, std::size_t outputs, bool with_reference);

  const Problem& problem() const { return problem_; }
  /// Makes each launch do its blocks so often; what it leaves stays the same. Throws Failure if no launch can.
  void repeat(std::uint32_t times);
  /// Empty unless asked for.
  const Words& reference() const { return reference_; }
  CUdeviceptr output(std::size_t index) const { return outputs_[index].output.address(); }

  /// Memory that a run changes, and what it is to hold before.
  struct Area {
    CUdeviceptr address;
    std::size_t words;
    std::uint32_t fill;
  };
  /// An output and, after it, the scratch buffers that go with it.
  std::vector<Area> areas(std::size_t output) const;

  /// Copies words to the GPU; returns when they are there.
  void upload(const Words& words, CUdeviceptr to);

  /// Fills an output with the problem's poison, and its scratch buffers; returns when that is in place. The output must
  /// not be in use.
  void poison(std::size_t output);

  /// Launches every step into a stream, for one output, and returns at once.
  void launch(std::size_t output, CUstream stream);

  /// What takes the place of a step's function: one with a parameter more behind the step's own, and a grid of its own.
  struct Other {
    CUfunction function;
    Dim3 grid;
    void* parameter;
  };
  /// Launches one step as launch() does, or in that form.
  void launch_step(std::size_t step, std::size_t output, CUstream stream, const Other* other = nullptr);

  /// Reads an output back, bit for bit: nothing when it is right, else one line about the first wrong word.
  /// The run into it must be complete.
  std::optional<std::string> verify(std::size_t output);

  /// FNV-1a, 64 bits, of the memory that the last verify() read back.
  std::uint64_t hash_of_last() const;

 private:
  struct Output {
    DeviceMemory output;
    std::vector<DeviceMemory> scratch;
  };

  /// Makes `pattern_` hold a word that many times. Waits for what is still to be copied from it.
  void fill_pattern(std::uint32_t word, std::size_t times);

  const KernelSpec& spec_;
  Problem problem_;
  Words reference_;
  std::vector<CUfunction> functions_;  ///< of the steps
  Stream copies_{Priority::kHigh};
  std::vector<DeviceMemory> inputs_;
  std::vector<Output> outputs_;
  PinnedWords pattern_;  ///< on the way to the GPU: one word repeated, or a piece of an upload
  std::uint32_t pattern_word_ = 0;
  std::size_t pattern_words_ = 0;  ///< so many times, from the beginning
  PinnedWords readback_;
};

}  // namespace gpuctl::bench
