#include "kernels/run/workbench.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>

namespace gpuctl::bench {
namespace {

constexpr std::size_t kWord = sizeof(std::uint32_t);
constexpr std::size_t kPatternWords = std::size_t{4} << 20;  // poison and uploads go in pieces of 16 MiB
constexpr std::size_t kMostArguments = 16;

/// The functions of all steps. Those of several steps may be the same.
std::vector<CUfunction> load_steps(const KernelSpec& spec, const Problem& problem) {
  CUmodule module = load_module(spec.ptx);
  std::vector<CUfunction> functions;
  for (const Step& step : problem.steps) {
    if (step.arguments.size() > kMostArguments) throw Failure(std::string(spec.name) + ": too many arguments");
    functions.push_back(find_entry(module, step.entry.empty() ? spec.name : step.entry));
  }
  return functions;
}

}  // namespace

Workbench::Workbench(const KernelSpec& spec, const Extent& extent, std::uint64_t seed, std::size_t outputs,
                     bool with_reference)
    : spec_(spec),
      problem_(spec.generate(extent, seed)),
      functions_(load_steps(spec, problem_)),
      pattern_(kPatternWords),
      readback_(problem_.output_words) {
  if (with_reference) reference_ = spec.reference(extent, problem_);
  for (const Words& words : problem_.inputs) {
    inputs_.emplace_back(words.size() * kWord);
    upload(words, inputs_.back().address());
  }
  for (Words& words : problem_.inputs) Words().swap(words);  // on the GPU now; large ones are hundreds of MiB
  for (std::size_t i = 0; i < outputs; ++i) {
    outputs_.push_back({DeviceMemory(problem_.output_words * kWord), {}});
    for (const Scratch& scratch : problem_.scratch) outputs_.back().scratch.emplace_back(scratch.words * kWord);
  }
}

void Workbench::repeat(std::uint32_t times) {
  if (!problem_.repeat(times)) {
    throw Failure(std::string(spec_.name) + ": adds to what is there, so it takes longer by its extent alone");
  }
}

std::vector<Workbench::Area> Workbench::areas(std::size_t output) const {
  const Output& memory = outputs_[output];
  std::vector<Area> areas = {{memory.output.address(), problem_.output_words, problem_.poison}};
  for (std::size_t i = 0; i < memory.scratch.size(); ++i) {
    areas.push_back({memory.scratch[i].address(), problem_.scratch[i].words, problem_.scratch[i].fill});
  }
  return areas;
}

void Workbench::upload(const Words& words, CUdeviceptr to) {
  pattern_words_ = 0;
  for (std::size_t at = 0; at < words.size(); at += kPatternWords) {
    const std::size_t bytes = std::min(kPatternWords, words.size() - at) * kWord;
    std::memcpy(pattern_.data(), &words[at], bytes);
    CUDA_CALL(cuMemcpyHtoDAsync_v2, to + at * kWord, pattern_.data(), bytes, copies_.get());
    CUDA_CALL(cuStreamSynchronize, copies_.get());
  }
}

void Workbench::fill_pattern(std::uint32_t word, std::size_t times) {
  if (word == pattern_word_ && times <= pattern_words_) return;
  CUDA_CALL(cuStreamSynchronize, copies_.get());
  std::fill_n(pattern_.data(), times, word);
  pattern_word_ = word;
  pattern_words_ = times;
}

void Workbench::poison(std::size_t output) {
  for (const Area& area : areas(output)) {
    fill_pattern(area.fill, std::min(kPatternWords, area.words));
    for (std::size_t at = 0; at < area.words; at += kPatternWords) {
      const std::size_t bytes = std::min(kPatternWords, area.words - at) * kWord;
      CUDA_CALL(cuMemcpyHtoDAsync_v2, area.address + at * kWord, pattern_.data(), bytes, copies_.get());
    }
  }
  CUDA_CALL(cuStreamSynchronize, copies_.get());
}

void Workbench::launch(std::size_t output, CUstream stream) {
  for (std::size_t s = 0; s < problem_.steps.size(); ++s) launch_step(s, output, stream);
}

void Workbench::launch_step(std::size_t step, std::size_t output, CUstream stream, const Other* other) {
  union Value {
    CUdeviceptr address;
    std::uint32_t number;
  };
  std::array<Value, kMostArguments> values;
  std::array<void*, kMostArguments + 1> pointers;
  const auto& [entry, grid, block, arguments, once] = problem_.steps[step];
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const Argument& argument = arguments[i];
    switch (argument.kind) {
      case Argument::Kind::kInput:
        values[i].address = inputs_[argument.value].address();
        break;
      case Argument::Kind::kOutput:
        values[i].address = outputs_[output].output.address();
        break;
      case Argument::Kind::kScratch:
        values[i].address = outputs_[output].scratch[argument.value].address();
        break;
      case Argument::Kind::kNumber:
        values[i].number = argument.value;
        break;
    }
    pointers[i] = &values[i];
  }
  if (other) pointers[arguments.size()] = other->parameter;
  const Dim3 blocks = other ? other->grid : grid;
  CUDA_CALL(cuLaunchKernel, other ? other->function : functions_[step], blocks.x, blocks.y, blocks.z, block.x, block.y,
            block.z, 0, stream, pointers.data(), nullptr);
}

std::optional<std::string> Workbench::verify(std::size_t output) {
  CUDA_CALL(cuMemcpyDtoHAsync_v2, readback_.data(), outputs_[output].output.address(), problem_.output_words * kWord,
            copies_.get());
  CUDA_CALL(cuStreamSynchronize, copies_.get());
  const std::uint32_t* found = readback_.data();
  if (std::equal(reference_.begin(), reference_.end(), found)) return std::nullopt;  // also if there is no reference
  const auto [wrong, expected] = std::mismatch(found, found + reference_.size(), reference_.begin());
  char line[128];
  std::snprintf(line, sizeof line, "%s word %zu of %zu: 0x%08x, expected 0x%08x%s", std::string(spec_.name).c_str(),
                static_cast<std::size_t>(wrong - found), reference_.size(), *wrong, *expected,
                *wrong == problem_.poison ? " (untouched)" : "");
  return line;
}

std::uint64_t Workbench::hash_of_last() const {
  constexpr std::uint64_t kBasis = 0xcbf29ce484222325;
  constexpr std::uint64_t kPrime = 0x100000001b3;
  std::uint64_t hash = kBasis;
  const auto* bytes = reinterpret_cast<const unsigned char*>(readback_.data());
  for (std::size_t i = 0; i < problem_.output_words * kWord; ++i) hash = (hash ^ bytes[i]) * kPrime;
  return hash;
}

}  // namespace gpuctl::bench
