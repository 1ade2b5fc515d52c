#include "libgpuslice/launch/chunks.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>

#include "libgpuslice/base/environment.h"

namespace gpuslice {

using gpuctl::ptx::LaunchArgs;

namespace {

/// Fewest chunks per worker. Chunks shrink towards the end of a launch (LaunchArgs::taper), which shortens the idle
/// time at its end.
constexpr std::uint64_t kChunksPerWorker = 4;
/// A claim takes about a microsecond, so it should be worth at least this much work.
constexpr double kWorthAClaimNs = 6000;
/// Claims are atomics on one word, which the GPU executes one after the other, in about 3 ns each (measured). Workers
/// should not queue for long. So claims occupy that word for a third of the time at most.
constexpr double kBetweenClaimsNs = 9;
/// This fraction of the work that is worth a claim is enough. Where block-tasks are long, rounding up would add much.
constexpr double kNearlyWorth = 0.95;
/// Towards the end chunks may be shorter by this factor. Workers then wait for the last chunk, so claims may occupy the
/// word for two thirds of the time.
constexpr double kLastShorter = 2;
/// A chunk takes at most this fraction of the target. The rest is for polling the grant, and for seeing that the last
/// worker has left.
constexpr double kOfTarget = 0.9;
/// To be worth their claims, chunks may take at most this many times the target.
constexpr double kLongerForClaims = 1.5;
constexpr double kMostPerClaim = 0xffff;
/// Launches with this many block-tasks or more are not strided: strided numbers may end this far above the last
/// block-task.
constexpr std::uint64_t kMostStrided = std::uint64_t{1} << 29;

}  // namespace

std::uint32_t fixed_chunk() {
  static const std::uint32_t fixed = [] {
    const char* wanted = environment("GPUSLICE_CHUNK");
    std::uint16_t number = 0;
    if (wanted) std::from_chars(wanted, wanted + std::strlen(wanted), number);
    return number;
  }();
  return fixed;
}

Chunks plan_chunks(const std::array<std::uint32_t, 3>& grid, double task_ns, std::uint64_t workers, double target_ns,
                   std::uint32_t fixed) {
  const std::uint64_t tasks = std::uint64_t{grid[0]} * grid[1] * grid[2];
  Chunks chunks{.taper = static_cast<std::uint32_t>(std::bit_width(2 * workers - 1)),
                .total = static_cast<std::uint32_t>(tasks)};
  if (task_ns <= 0) return chunks;
  const double worth = std::max(kWorthAClaimNs, kBetweenClaimsNs * static_cast<double>(workers));
  // For longer block-tasks, the time of a look before the claim does not matter.
  chunks.eager = task_ns <= kOfTarget * target_ns;
  const double tasks_worth = std::ceil(kNearlyWorth * worth / task_ns);
  const double longest = std::max(kOfTarget * target_ns, std::min(tasks_worth * task_ns, kLongerForClaims * target_ns));
  // In a grid of two dimensions, neighbours in the second dimension are far apart in the grid's order.
  const bool strided = grid[1] > 1 && grid[2] == 1 && tasks < kMostStrided;
  const auto step_bits = static_cast<std::uint32_t>(std::bit_width(workers)) - 1;
  const auto share = static_cast<double>(tasks / (workers * kChunksPerWorker));
  const double most = std::min<double>(kMostPerClaim, gpuctl::ptx::longest_run(chunks.total, strided ? step_bits : 0));
  chunks.most = static_cast<std::uint32_t>(std::max(1.0, std::min({longest / task_ns, share, most})));
  chunks.least = static_cast<std::uint32_t>(
      std::clamp(std::ceil(worth / kLastShorter / task_ns), 1.0, static_cast<double>(chunks.most)));
  if (fixed != 0) chunks.most = chunks.least = static_cast<std::uint32_t>(std::min<double>(fixed, most));
  if (strided && chunks.most > 1) {
    chunks.run_bits = static_cast<std::uint32_t>(std::bit_width(chunks.most)) - 1;
    chunks.step_bits = step_bits;
    chunks.most = chunks.least = 1u << chunks.run_bits;
    const std::uint64_t group = std::uint64_t{1} << (chunks.run_bits + chunks.step_bits);
    chunks.total = static_cast<std::uint32_t>((tasks + group - 1) / group * group);
  }
  return chunks;
}

LaunchArgs lay_out(const std::array<std::uint32_t, 3>& grid, const Chunks& chunks) {
  const std::uint32_t tasks = grid[0] * grid[1] * grid[2];
  return {.slot = 0,
          .host = 0,
          .polled = 0,
          .total = chunks.total,
          .tasks = tasks,
          .grid_x = grid[0],
          .grid_y = grid[1],
          .grid_z = grid[2],
          .chunk = chunks.least << 16 | chunks.most,
          .taper = chunks.taper,
          .quick_below = 0,
          .workers = 0,
          .first = 0,
          .given = 0,
          .flags = chunks.eager ? gpuctl::ptx::kEager : 0,
          .limit = 0,
          .range = 0,
          .by_grid_x = gpuctl::ptx::divisor(grid[0]),
          .by_grid_y = gpuctl::ptx::divisor(grid[1]),
          .order = gpuctl::ptx::task_order(chunks.step_bits, chunks.run_bits),
          .advance = gpuctl::ptx::advance(tasks, chunks.step_bits),
          .index_mask = gpuctl::ptx::index_mask(tasks, chunks.step_bits),
          .minus_grid_x = 0 - grid[0]};
}

void set_workers(LaunchArgs& args, std::uint32_t workers, bool first_given) {
  const std::uint32_t most = args.chunk & 0xffff, least = args.chunk >> 16;
  args.workers = workers;
  args.first = first_given ? std::clamp(args.total >> args.taper, least, most) : 0;
  args.given = args.first * workers;
  // A quick claim does not look whether its block-tasks exist: of the last group of a strided launch some do not,
  // however few workers there are now.
  const std::uint64_t group = args.order == 0 ? 0 : std::uint64_t{1} << ((args.order & 0xff) + (args.order >> 8));
  const std::uint64_t at_the_end =
      std::max({std::uint64_t{most} * workers, most > least ? std::uint64_t{most} << args.taper : 0, group});
  args.quick_below = at_the_end < args.total ? args.total - static_cast<std::uint32_t>(at_the_end) : 0;
}

}  // namespace gpuslice
