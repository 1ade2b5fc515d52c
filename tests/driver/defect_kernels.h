// The kernels of tests/ptx/defects: how they are launched and what they leave behind, computed without a GPU.
#pragma once

#include <algorithm>
#include <array>
#include <vector>

/// One module of tests/ptx/defects, with an entry of the same name. Its parameter is the address of `expected.size()`
/// words, all 0 before the launch; without a parameter it leaves its results in the module's variable `results`.
struct DefectKernel {
  const char* name;
  std::array<unsigned, 3> grid;
  unsigned threads;  ///< of a block
  std::vector<unsigned> expected;
  unsigned shared = 0;  ///< bytes, dynamic
  bool parameter = true;
  bool cooperative = false;
  int free_word = -1;  ///< a word that may differ
};

/// A word for each thread of the grid: value(block, thread).
template <class Value>
std::vector<unsigned> for_each_thread(unsigned blocks, unsigned threads, Value value) {
  std::vector<unsigned> words;
  for (unsigned block = 0; block < blocks; ++block) {
    for (unsigned thread = 0; thread < threads; ++thread) words.push_back(value(block, thread));
  }
  return words;
}

inline std::vector<unsigned> after_exits(unsigned blocks) {
  return for_each_thread(blocks, 96, [](unsigned block, unsigned thread) {
    if (thread >= 80) return 1u;
    const unsigned neighbour = (thread + 1) % 80 * 3 + block;
    return 1 + neighbour + (thread < 40 ? 1000 * (thread % 4 + 1) : 0);
  });
}

inline std::vector<unsigned> after_named_barriers(unsigned blocks) {
  std::vector<unsigned> words;
  for (unsigned block = 0; block < blocks; ++block) {
    std::array<unsigned, 128> values{};
    for (unsigned t = 0; t < 128; ++t) values[t] = t + block;
    for (unsigned half = 0; half < 2; ++half) {
      for (int round = 0; round < (half == 0 ? 5 : 2); ++round) {
        const auto before = values;
        for (unsigned i = 0; i < 64; ++i)
          values[half * 64 + i] = before[half * 64 + i] * 3 + before[half * 64 + (i + 1) % 64];
      }
    }
    const auto voters = std::count_if(values.begin(), values.end(), [](unsigned value) { return (value & 4) != 0; });
    for (const unsigned value : values) words.push_back(value + static_cast<unsigned>(voters));
  }
  return words;
}

inline std::vector<unsigned> indices_otherwise(unsigned nx, unsigned ny, unsigned nz) {
  return for_each_thread(nx * ny * nz, 32, [=](unsigned block, unsigned thread) {
    const unsigned x = block % nx, y = block / nx % ny, z = block / nx / ny;
    return x * (1 + 100 + 10000 + 100000) + y * (7 + 1000) + z * 70 + ny * 1000000 +
           (thread % 2 != 0 ? z : 9) * 10000000;
  });
}

/// Word 0 counts the blocks, then a word of each block, then what the next block had there.
inline std::vector<unsigned> after_meeting(unsigned blocks) {
  std::vector<unsigned> words{blocks};
  for (unsigned block = 0; block < blocks; ++block) words.push_back(block * 3 + 5);
  for (unsigned block = 0; block < blocks; ++block) words.push_back((block + 1) % blocks * 3 + 5);
  return words;
}

inline std::vector<unsigned> prefix_sums(unsigned blocks, unsigned threads) {
  std::vector<unsigned> words, states;
  unsigned sum = 0;
  for (unsigned i = 0; i < blocks * threads; ++i) {
    words.push_back(sum += i % 7 + 1);
    if ((i + 1) % threads == 0) states.push_back(sum | 0x80000000u);
  }
  words.insert(words.end(), states.begin(), states.end());
  return words;
}

/// The words of one_warp_blocks: how many are there now, the most there were, and how often each ran.
inline constexpr int kMostAtOnceWord = 1;
inline std::vector<unsigned> each_once(unsigned blocks) {
  std::vector<unsigned> words(2 + blocks, 1);
  words[0] = 0;
  return words;
}

/// Twice 32 lanes of each block after two barriers of the grid.
inline std::vector<unsigned> after_grid_barriers(unsigned blocks) {
  std::vector<unsigned> words(1 + blocks, 64);
  words[0] = 2 * blocks;
  return words;
}

inline std::vector<DefectKernel> defect_kernels() {
  return {
      {.name = "slow_warp", .grid = {600, 1, 1}, .threads = 64, .expected = std::vector<unsigned>(600 * 64, 1)},
      {.name = "one_warp_blocks",
       .grid = {512, 1, 1},
       .threads = 32,
       .expected = each_once(512),
       .free_word = kMostAtOnceWord},
      {.name = "predicated_exit", .grid = {120, 1, 1}, .threads = 96, .expected = after_exits(120)},
      {.name = "named_barriers", .grid = {60, 1, 1}, .threads = 128, .expected = after_named_barriers(60)},
      {.name = "block_index_in_function",
       .grid = {17, 12, 1},
       .threads = 32,
       .expected =
           for_each_thread(17 * 12, 32, [](unsigned b, unsigned t) { return t * 17 + b / 17 + b % 17 * 1000; })},
      {.name = "block_index_otherwise", .grid = {13, 7, 3}, .threads = 32, .expected = indices_otherwise(13, 7, 3)},
      {.name = "no_parameters",
       .grid = {64, 1, 1},
       .threads = 32,
       .expected = std::vector<unsigned>(64, 32),
       .parameter = false},
      {.name = "indented_parameters", .grid = {64, 1, 1}, .threads = 32, .expected = std::vector<unsigned>(64, 32)},
      {.name = "cooperative", .grid = {64, 1, 1}, .threads = 32, .expected = after_meeting(64), .cooperative = true},
      {.name = "shared_memory_decides_occupancy",
       .grid = {100, 1, 1},
       .threads = 64,
       .expected = for_each_thread(100, 64, [](unsigned b, unsigned t) { return b * 64 + 63 - t; }),
       .shared = 100 * 1024},
      {.name = "look_back_scan", .grid = {300, 1, 1}, .threads = 64, .expected = prefix_sums(300, 64)},
      {.name = "blocks_wait_for_each_other", .grid = {64, 1, 1}, .threads = 32, .expected = after_grid_barriers(64)},
  };
}
