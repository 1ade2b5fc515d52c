#include "kernel_table.h"

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

TEST(KernelTable, NamesAreUniqueAndTheEntriesOfThePtx) {
  std::set<std::string_view> names;
  for (const KernelSpec& spec : kernel_table()) {
    EXPECT_TRUE(names.insert(spec.name).second) << spec.name;
    EXPECT_NE(spec.ptx.find(".entry " + std::string(spec.name) + "("), std::string_view::npos) << spec.name;
    EXPECT_EQ(spec.ptx.data()[spec.ptx.size()], '\0') << spec.name;
    EXPECT_EQ(find_kernel(spec.name), &spec);
  }
  EXPECT_EQ(find_kernel("vectoradd"), nullptr);
}

TEST(KernelTable, EachProblemFitsItsKernel) {
  for (const KernelSpec& spec : kernel_table()) {
    const Extent& extent = spec.sizes[0];
    const Problem problem = spec.generate(extent, 1);
    const auto parameters = static_cast<std::size_t>(std::ranges::count(spec.parameters, ',')) + 1;
    EXPECT_EQ(problem.arguments.size(), parameters) << spec.name;
    EXPECT_LE(problem.block.count(), 1024u) << spec.name;
    EXPECT_EQ(spec.reference(extent, problem).size(), problem.output_words) << spec.name;
    for (const Argument& argument : problem.arguments) {
      if (argument.kind == Argument::Kind::kInput) {
        EXPECT_LT(argument.value, problem.inputs.size()) << spec.name;
      }
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
