#include "softgpu/decode/live_registers.h"

#include <algorithm>
#include <unordered_map>

namespace gpuctl::softgpu::engine {
namespace {

struct Interval {
  std::uint32_t first = 0xffffffff;
  std::uint32_t last = 0;
  std::uint32_t words = 0;
};

struct Loop {
  std::uint32_t first;
  std::uint32_t last;
};

}  // namespace

std::uint32_t live_registers(const std::vector<Instruction>& code, const std::vector<RegisterUse>& registers) {
  std::unordered_map<OperandRef, std::size_t> index;
  std::vector<Interval> intervals(registers.size());
  for (std::size_t k = 0; k < registers.size(); ++k) {
    index[registers[k].ref] = k;
    intervals[k].words = registers[k].words;
  }
  std::vector<Loop> loops;
  for (std::uint32_t at = 0; at < code.size(); ++at) {
    for (const OperandRef ref : code[at].op) {
      const auto found = index.find(ref);
      if (found == index.end()) continue;
      Interval& interval = intervals[found->second];
      interval.first = std::min(interval.first, at);
      interval.last = at;
    }
    if (code[at].kind == Kind::kBranch && code[at].target <= at) loops.push_back({code[at].target, at});
  }
  // In order of their ends, inner loops come before the outer loops, into which they may extend a value.
  for (const Loop& loop : loops)
    for (Interval& interval : intervals)
      if (interval.first < loop.first && interval.last >= loop.first)
        interval.last = std::max(interval.last, loop.last);

  std::vector<std::int64_t> change(code.size() + 1);
  for (const Interval& interval : intervals) {
    if (interval.first > interval.last) continue;  // never mentioned
    change[interval.first] += interval.words;
    change[interval.last] -= interval.words;  // the result of its last reader can take its place
  }
  std::int64_t alive = 0, most = 0;
  for (const std::int64_t c : change) most = std::max(most, alive += c);
  return static_cast<std::uint32_t>(most);
}

}  // namespace gpuctl::softgpu::engine
