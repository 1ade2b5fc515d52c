#include "workbench.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <utility>

namespace gpuctl::bench {
namespace {

constexpr std::size_t kWord = sizeof(std::uint32_t);
constexpr std::size_t kPatternWords = std::size_t{4} << 20;  // poison and uploads go in pieces of 16 MiB
constexpr std::size_t kMostArguments = 8;

}  // namespace

Workbench::Workbench(const KernelSpec& spec, const Extent& extent, std::uint64_t seed, std::size_t outputs,
                     bool with_reference)
    : spec_(spec),
      problem_(spec.generate(extent, seed)),
      function_(load_kernel(spec.ptx, spec.name)),
      pattern_(kPatternWords),
      readback_(problem_.output_words) {
  if (with_reference) reference_ = spec.reference(extent, problem_);
  for (const Words& words : problem_.inputs) {
    inputs_.emplace_back(words.size() * kWord);
    upload(words, inputs_.back().address());
  }
  for (Words& words : problem_.inputs) Words().swap(words);  // on the GPU now; large ones are hundreds of MiB
  for (std::size_t i = 0; i < outputs; ++i) outputs_.emplace_back(problem_.output_words * kWord);
}

void Workbench::upload(const Words& words, CUdeviceptr to) {
  pattern_is_poison_ = false;
  for (std::size_t at = 0; at < words.size(); at += kPatternWords) {
    const std::size_t bytes = std::min(kPatternWords, words.size() - at) * kWord;
    std::memcpy(pattern_.data(), &words[at], bytes);
    CUDA_CALL(cuMemcpyHtoDAsync_v2, to + at * kWord, pattern_.data(), bytes, copies_.get());
    CUDA_CALL(cuStreamSynchronize, copies_.get());
  }
}

void Workbench::poison(std::size_t output) {
  if (!std::exchange(pattern_is_poison_, true)) {
    std::fill_n(pattern_.data(), std::min(kPatternWords, problem_.output_words), problem_.poison);
  }
  for (std::size_t at = 0; at < problem_.output_words; at += kPatternWords) {
    const std::size_t bytes = std::min(kPatternWords, problem_.output_words - at) * kWord;
    CUDA_CALL(cuMemcpyHtoDAsync_v2, outputs_[output].address() + at * kWord, pattern_.data(), bytes, copies_.get());
  }
  CUDA_CALL(cuStreamSynchronize, copies_.get());
}

void Workbench::launch(std::size_t output, CUstream stream) {
  union Value {
    CUdeviceptr address;
    std::uint32_t number;
  };
  std::array<Value, kMostArguments> values;
  std::array<void*, kMostArguments> pointers;
  for (std::size_t i = 0; i < problem_.arguments.size(); ++i) {
    const Argument& argument = problem_.arguments[i];
    switch (argument.kind) {
      case Argument::Kind::kInput:
        values[i].address = inputs_[argument.value].address();
        break;
      case Argument::Kind::kOutput:
        values[i].address = outputs_[output].address();
        break;
      case Argument::Kind::kNumber:
        values[i].number = argument.value;
        break;
    }
    pointers[i] = &values[i];
  }
  const Dim3& grid = problem_.grid;
  const Dim3& block = problem_.block;
  CUDA_CALL(cuLaunchKernel, function_, grid.x, grid.y, grid.z, block.x, block.y, block.z, 0, stream, pointers.data(),
            nullptr);
}

std::optional<std::string> Workbench::verify(std::size_t output) {
  CUDA_CALL(cuMemcpyDtoHAsync_v2, readback_.data(), outputs_[output].address(), problem_.output_words * kWord,
            copies_.get());
  CUDA_CALL(cuStreamSynchronize, copies_.get());
  const std::uint32_t* found = readback_.data();
  if (std::memcmp(found, reference_.data(), reference_.size() * kWord) == 0) return std::nullopt;
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
