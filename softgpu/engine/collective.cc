// Operations among the lanes of a warp: shuffles, votes, matches, reductions, and bar.warp.sync.
//
// With .sync, lanes wait until every living lane of the member mask has come to the same operation with the same mask.
// The instructions need not be the same, so the operands of each lane are looked up through its own program counter.
#include <algorithm>

#include "softgpu/engine/block.h"

namespace gpuctl::softgpu::engine {
namespace {

struct Lanes {
  Mask mask;
  std::uint32_t value[kLanes];
  std::uint64_t wide[kLanes];
  std::uint32_t b[kLanes];
  std::uint32_t c[kLanes];
  Mask predicate;
  std::uint32_t result[kLanes];
  Mask result_predicate;
};

template <WarpOp kOp>
void shuffle(Lanes& l) {
  for_lanes(l.mask, [&l](int i) {
    const int b = static_cast<int>(l.b[i] & 31), clamp = static_cast<int>(l.c[i] & 31),
              segment = static_cast<int>((l.c[i] >> 8) & 31);
    const int least = i & segment, greatest = (i & segment) | (clamp & ~segment);
    int from = least | (b & ~segment);
    if constexpr (kOp == WarpOp::kShflUp) from = i - b;
    if constexpr (kOp == WarpOp::kShflDown) from = i + b;
    if constexpr (kOp == WarpOp::kShflBfly) from = i ^ b;
    const bool inside = kOp == WarpOp::kShflUp ? from >= greatest : from <= greatest;
    if (!inside) from = i;
    // The value of a lane that does not take part is undefined: give the reading lane its own value.
    l.result[i] = (l.mask >> from) & 1 ? l.value[from] : l.value[i];
    l.result_predicate |= Mask(inside) << i;
  });
}

void match(Lanes& l, bool all) {
  for_lanes(l.mask, [&](int i) {
    Mask same = 0;
    for_lanes(l.mask, [&](int k) { same |= Mask(l.wide[k] == l.wide[i]) << k; });
    const bool everyone = same == l.mask;
    l.result[i] = all ? (everyone ? l.mask : 0) : same;
    l.result_predicate |= Mask(everyone) << i;
  });
}

std::uint32_t reduce(const Lanes& l, WarpOp op) {
  std::uint32_t r = l.value[__builtin_ctz(l.mask)];
  for_lanes(l.mask & (l.mask - 1), [&](int i) {
    const std::uint32_t v = l.value[i];
    const auto sr = static_cast<std::int32_t>(r), sv = static_cast<std::int32_t>(v);
    switch (op) {
      case WarpOp::kReduxAddU:
        r += v;
        break;
      case WarpOp::kReduxMinU:
        r = std::min(r, v);
        break;
      case WarpOp::kReduxMaxU:
        r = std::max(r, v);
        break;
      case WarpOp::kReduxMinS:
        r = static_cast<std::uint32_t>(std::min(sr, sv));
        break;
      case WarpOp::kReduxMaxS:
        r = static_cast<std::uint32_t>(std::max(sr, sv));
        break;
      case WarpOp::kReduxAnd:
        r &= v;
        break;
      case WarpOp::kReduxOr:
        r |= v;
        break;
      default:
        r ^= v;
        break;
    }
  });
  return r;
}

void compute(Lanes& l, WarpOp op) {
  const auto everyone = [&l](std::uint32_t value) { std::fill_n(l.result, kLanes, value); };
  switch (op) {
    case WarpOp::kSync:
      return;
    case WarpOp::kShflUp:
      return shuffle<WarpOp::kShflUp>(l);
    case WarpOp::kShflDown:
      return shuffle<WarpOp::kShflDown>(l);
    case WarpOp::kShflBfly:
      return shuffle<WarpOp::kShflBfly>(l);
    case WarpOp::kShflIdx:
      return shuffle<WarpOp::kShflIdx>(l);
    case WarpOp::kVoteAll:
      l.result_predicate = l.predicate == l.mask ? kAllLanes : 0;
      return;
    case WarpOp::kVoteAny:
      l.result_predicate = l.predicate != 0 ? kAllLanes : 0;
      return;
    case WarpOp::kVoteUni:
      l.result_predicate = l.predicate == l.mask || l.predicate == 0 ? kAllLanes : 0;
      return;
    case WarpOp::kVoteBallot:
      return everyone(l.predicate);
    case WarpOp::kMatchAny32:
    case WarpOp::kMatchAny64:
      return match(l, false);
    case WarpOp::kMatchAll32:
    case WarpOp::kMatchAll64:
      return match(l, true);
    case WarpOp::kElect:
      everyone(static_cast<std::uint32_t>(__builtin_ctz(l.mask)));
      l.result_predicate = l.mask & -l.mask;
      return;
    default: {
      const std::uint32_t value = reduce(l, op);
      return everyone(value);
    }
  }
}

bool takes_predicate(WarpOp op) {
  return op >= WarpOp::kVoteAll && op <= WarpOp::kVoteBallot;
}
bool takes_narrow_match(WarpOp op) {
  return op == WarpOp::kMatchAny32 || op == WarpOp::kMatchAll32;
}
bool takes_wide(WarpOp op) {
  return op == WarpOp::kMatchAny64 || op == WarpOp::kMatchAll64;
}

}  // namespace

void Block::warp_sync(Warp& warp, const Instruction& in, Mask mask) {
  if (in.flags & kUniform) return run_together(warp, in, mask);
  const auto* members = at<std::uint32_t>(in.op[5]);
  // The usual case: no lane waits, and all lanes of the mask are here.
  const Mask named = members[__builtin_ctz(mask)];
  if (warp.at_sync == 0 && (named & warp.live & ~mask) == 0) {
    Mask same = 0;
    for_lanes(mask, [&](int i) { same |= Mask(members[i] == named) << i; });
    if (same == mask) return run_together(warp, in, mask);
  }
  for_lanes(mask, [&](int i) { warp.members[i] = members[i]; });
  warp.at_sync |= mask;
  check_syncs(warp);
}

void Block::check_syncs(Warp& warp) {
  const Instruction* code = program_.code.data();
  Mask left = warp.at_sync;
  while (left != 0) {
    const int first = __builtin_ctz(left);
    const Mask members = warp.members[first];
    Mask here = 0;
    for_lanes(left, [&](int i) {
      here |= Mask(warp.members[i] == members && code[warp.pc[i]].sub == code[warp.pc[first]].sub) << i;
    });
    left &= ~here;
    if ((members & warp.live & ~here) != 0) continue;
    warp.at_sync &= ~here;
    run_collective(warp, here);
  }
}

/// The lanes are at the same instruction, whose frame is the current one.
void Block::run_together(Warp& warp, const Instruction& in, Mask lanes) {
  const auto op = static_cast<WarpOp>(in.sub);
  Lanes l;
  l.mask = lanes;
  l.predicate = l.result_predicate = 0;
  if (takes_predicate(op)) {
    l.predicate = *at<Mask>(in.op[1]) & lanes;
  } else if (takes_wide(op)) {
    std::copy_n(at<std::uint64_t>(in.op[1]), kLanes, l.wide);
  } else if (in.op[1] != kNoOperand) {
    std::copy_n(at<std::uint32_t>(in.op[1]), kLanes, l.value);
    if (takes_narrow_match(op)) std::copy_n(l.value, kLanes, l.wide);
    if (in.op[2] != kNoOperand) {
      std::copy_n(at<std::uint32_t>(in.op[2]), kLanes, l.b);
      std::copy_n(at<std::uint32_t>(in.op[3]), kLanes, l.c);
    }
  }
  compute(l, op);
  if (in.op[0] != kNoOperand) {
    auto* d = at<std::uint32_t>(in.op[0]);
    for_lanes(lanes, [&](int i) { d[i] = l.result[i]; });
  }
  if (in.op[4] != kNoOperand) {
    Mask& p = *at<Mask>(in.op[4]);
    p = (p & ~lanes) | (l.result_predicate & lanes);
  }
  for_lanes(lanes, [&](int i) { ++warp.pc[i]; });
}

void Block::run_collective(Warp& warp, Mask lanes) {
  const Instruction* code = program_.code.data();
  const int first = __builtin_ctz(lanes);
  const auto op = static_cast<WarpOp>(code[warp.pc[first]].sub);
  Lanes l{};
  l.mask = lanes;
  for_lanes(lanes, [&](int i) {
    const Instruction& in = code[warp.pc[i]];
    const std::uint32_t frame = warp.frame[i];
    if (takes_predicate(op)) {
      l.predicate |= *at<Mask>(warp, in.op[1], frame) & Mask{1} << i;
      return;
    }
    if (in.op[1] == kNoOperand) return;
    if (takes_wide(op))
      l.wide[i] = at<std::uint64_t>(warp, in.op[1], frame)[i];
    else
      l.wide[i] = l.value[i] = at<std::uint32_t>(warp, in.op[1], frame)[i];
    if (in.op[2] == kNoOperand) return;
    l.b[i] = at<std::uint32_t>(warp, in.op[2], frame)[i];
    l.c[i] = at<std::uint32_t>(warp, in.op[3], frame)[i];
  });
  compute(l, op);
  for_lanes(lanes, [&](int i) {
    const Instruction& in = code[warp.pc[i]++];
    if (in.op[0] != kNoOperand) at<std::uint32_t>(warp, in.op[0], warp.frame[i])[i] = l.result[i];
    if (in.op[4] == kNoOperand) return;
    Mask& p = *at<Mask>(warp, in.op[4], warp.frame[i]);
    const Mask bit = Mask{1} << i;
    p = (p & ~bit) | (l.result_predicate & bit);
  });
}

}  // namespace gpuctl::softgpu::engine
