#include "kernels/run/kernel_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <set>

namespace gpuctl::bench {
namespace {

const KernelSpec& kernel(std::string_view name) {
  const KernelSpec* spec = find_kernel(name);
  EXPECT_NE(spec, nullptr);
  return *spec;
}

float as_float(std::uint32_t word) {
  return std::bit_cast<float>(word);
}

TEST(KernelTable, NamesAreUnique) {
  std::set<std::string_view> names;
  for (const KernelSpec& spec : kernel_table()) {
    EXPECT_TRUE(names.insert(spec.name).second) << spec.name;
    EXPECT_EQ(spec.ptx.data()[spec.ptx.size()], '\0') << spec.name;
    EXPECT_EQ(find_kernel(spec.name), &spec);
  }
  EXPECT_EQ(find_kernel("vectoradd"), nullptr);
}

/// One letter a parameter of an entry of the PTX: p for an address, n for a 32-bit number, ? for anything else.
/// "no entry" when there is none of that name.
std::string signature(std::string_view ptx, std::string_view entry) {
  const std::string head = ".entry " + std::string(entry) + "(";
  const std::size_t begin = ptx.find(head);
  if (begin == std::string_view::npos) return "no entry";
  std::string_view list = ptx.substr(begin + head.size());
  list = list.substr(0, list.find(')'));
  std::string letters;
  for (std::size_t at = list.find(".param "); at != std::string_view::npos; at = list.find(".param ", at + 1)) {
    const std::string_view type = list.substr(at + 7, 4);
    letters += type == ".u64" ? 'p' : type == ".u32" || type == ".f32" ? 'n' : '?';
  }
  return letters;
}

std::string signature(const Step& step) {
  std::string letters;
  for (const Argument& argument : step.arguments) letters += argument.kind == Argument::Kind::kNumber ? 'n' : 'p';
  return letters;
}

TEST(KernelTable, EachStepFitsItsEntry) {
  for (const KernelSpec& spec : kernel_table()) {
    for (const Extent& extent : {spec.sizes[0], spec.sizes[1]}) {
      const Problem problem = spec.generate(extent, 1);
      ASSERT_FALSE(problem.steps.empty()) << spec.name;
      for (const Step& step : problem.steps) {
        const std::string_view entry = step.entry.empty() ? spec.name : step.entry;
        EXPECT_EQ(signature(step), signature(spec.ptx, entry)) << spec.name << ": " << entry;
        EXPECT_GE(step.grid.count(), 1u) << spec.name << ": " << entry;
        EXPECT_LE(step.block.count(), 1024u) << spec.name << ": " << entry;
      }
    }
  }
}

TEST(KernelTable, EveryBufferExistsAndIsUsed) {
  for (const KernelSpec& spec : kernel_table()) {
    const Problem problem = spec.generate(spec.sizes[0], 1);
    std::set<std::uint32_t> inputs;
    std::set<std::uint32_t> scratch;
    bool output = false;
    for (const Step& step : problem.steps) {
      for (const Argument& argument : step.arguments) {
        if (argument.kind == Argument::Kind::kInput) inputs.insert(argument.value);
        if (argument.kind == Argument::Kind::kScratch) scratch.insert(argument.value);
        output |= argument.kind == Argument::Kind::kOutput;
      }
    }
    const auto all_of = [](std::size_t count) {
      std::set<std::uint32_t> all;
      for (std::uint32_t i = 0; i < count; ++i) all.insert(i);
      return all;
    };
    EXPECT_EQ(inputs, all_of(problem.inputs.size())) << spec.name;
    EXPECT_EQ(scratch, all_of(problem.scratch.size())) << spec.name;
    EXPECT_TRUE(output) << spec.name;
    for (const Words& words : problem.inputs) EXPECT_FALSE(words.empty()) << spec.name;
    for (const Scratch& words : problem.scratch) EXPECT_GT(words.words, 0u) << spec.name;
  }
}

TEST(KernelTable, TheReferenceIsStableAndAsLongAsTheOutput) {
  for (const KernelSpec& spec : kernel_table()) {
    const Problem problem = spec.generate(spec.sizes[0], 1);
    const Words once = spec.reference(spec.sizes[0], problem);
    EXPECT_EQ(once.size(), problem.output_words) << spec.name;
    EXPECT_EQ(once, spec.reference(spec.sizes[0], problem)) << spec.name;
  }
}

TEST(KernelTable, TheSeedDecidesTheResult) {
  for (const KernelSpec& spec : kernel_table()) {
    const Words one = spec.reference(spec.sizes[0], spec.generate(spec.sizes[0], 1));
    EXPECT_NE(one, spec.reference(spec.sizes[0], spec.generate(spec.sizes[0], 2))) << spec.name;
  }
}

TEST(KernelTable, LaunchesThatAddToWhatIsThereAreNotRepeated) {
  const std::set<std::string_view> add = {"histogram", "md5Hash", "work"};
  for (const KernelSpec& spec : kernel_table()) {
    Problem problem = spec.generate(spec.sizes[0], 1);
    const Problem before = problem;
    EXPECT_EQ(problem.repeat(7), !add.contains(spec.name)) << spec.name;
    for (std::size_t i = 0; i < problem.steps.size(); ++i) {
      const std::uint64_t times = problem.steps[i].once ? 1 : 7;
      EXPECT_EQ(problem.steps[i].grid.count(), times * before.steps[i].grid.count()) << spec.name;
    }
  }
}

TEST(KernelTable, PapersAreKnown) {
  const std::set<std::string_view> known = {"FLEP", "FRS", "SiM", "SMGuard", "EffiSha"};
  for (const KernelSpec& spec : kernel_table()) {
    std::set<std::string_view> named;
    for (std::string_view rest = spec.papers; !rest.empty();) {
      const std::size_t comma = rest.find(", ");
      const std::string_view paper = rest.substr(0, comma);
      EXPECT_TRUE(known.contains(paper)) << spec.name << ": " << paper;
      EXPECT_TRUE(named.insert(paper).second) << spec.name << ": " << paper << " twice";
      rest = comma == std::string_view::npos ? "" : rest.substr(comma + 2);
    }
  }
}

TEST(KernelTable, TheSeedDecidesTheInputs) {
  for (const KernelSpec& spec : kernel_table()) {
    const Problem problem = spec.generate(spec.sizes[0], 5);
    EXPECT_EQ(problem.inputs, spec.generate(spec.sizes[0], 5).inputs) << spec.name;
    EXPECT_NE(problem.inputs, spec.generate(spec.sizes[0], 6).inputs) << spec.name;
  }
}

// An output the kernel never wrote must not pass: no expected word may equal the poison.
TEST(KernelTable, PoisonIsNeverRight) {
  for (const KernelSpec& spec : kernel_table()) {
    const Problem problem = spec.generate(spec.sizes[0], 1);
    const Words expected = spec.reference(spec.sizes[0], problem);
    EXPECT_EQ(std::ranges::count(expected, problem.poison), 0) << spec.name;
  }
}

TEST(Reference, VectorAdd) {
  const KernelSpec& spec = kernel("vectorAdd");
  const Problem problem = spec.generate({1000}, 3);
  const Words out = spec.reference({1000}, problem);
  EXPECT_EQ(as_float(out[999]), as_float(problem.inputs[0][999]) + as_float(problem.inputs[1][999]));
}

TEST(Reference, MatrixMulIsNearTheProductInDoubles) {
  const KernelSpec& spec = kernel("matrixMul");
  const Extent extent{13, 21, 34};
  const Problem problem = spec.generate(extent, 3);
  const Words out = spec.reference(extent, problem);
  for (std::uint32_t row = 0; row < extent.x; ++row) {
    for (std::uint32_t column = 0; column < extent.y; ++column) {
      double sum = 0;
      for (std::uint32_t k = 0; k < extent.z; ++k) {
        sum += double{as_float(problem.inputs[0][row * extent.z + k])} *
               as_float(problem.inputs[1][k * extent.y + column]);
      }
      ASSERT_NEAR(as_float(out[row * extent.y + column]), sum, 1e-4);
    }
  }
}

TEST(Reference, ReductionKeepsTheTotal) {
  const KernelSpec& spec = kernel("reduction");
  for (const std::uint32_t count : {1u, 1023u, 1024u, 1025u, 5000u}) {
    const Problem problem = spec.generate({count}, 3);
    const Words sums = spec.reference({count}, problem);
    EXPECT_EQ(sums.size(), (count + 1023) / 1024);
    EXPECT_EQ(std::accumulate(sums.begin(), sums.end(), 0u),
              std::accumulate(problem.inputs[0].begin(), problem.inputs[0].end(), 0u));
  }
}

TEST(Reference, HistogramCountsEveryByteOnTopOfThePoison) {
  const KernelSpec& spec = kernel("histogram");
  const Problem problem = spec.generate({4097}, 3);
  const Words bins = spec.reference({4097}, problem);
  std::uint32_t total = 0;
  for (const std::uint32_t bin : bins) total += bin - problem.poison;
  EXPECT_EQ(total, 4 * 4097u);
}

// Block 19 holds threads 4864 to 5119; thread 5000 starts at table word 904 and goes on by 32 words an iteration.
TEST(Reference, WorkAddsUpTheThreadsOfABlock) {
  const KernelSpec& spec = kernel("work");
  const Extent extent{40, 200};
  const Problem problem = spec.generate(extent, 3);
  const Words out = spec.reference(extent, problem);
  std::uint32_t sum = problem.poison;
  for (std::uint32_t thread = 19 * 256; thread < 20 * 256; ++thread) {
    float x = as_float(problem.inputs[0][thread % 4096]);
    for (std::uint32_t k = 0; k < extent.y; ++k) {
      x = std::fma(x, 0.998f, as_float(problem.inputs[0][(thread + k * 32) % 4096]));
    }
    sum += std::bit_cast<std::uint32_t>(x) ^ thread;
  }
  EXPECT_EQ(out[19], sum);
}

}  // namespace
}  // namespace gpuctl::bench
