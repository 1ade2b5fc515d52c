// The sixteen barriers of a block, counted by threads.
//
// Threads that have exited count as arrived, so no thread waits for them. A count in the instruction is in whole warps:
// lanes that a warp does not have, or that have exited, arrive with the first lane of their warp that does. A barrier
// without a count, or with the count of the whole block, completes when every living thread has arrived.
#include "softgpu/engine/block.h"

namespace gpuctl::softgpu::engine {

void Block::arrive(Warp& warp, const Instruction& in, Mask mask) {
  const auto* numbers = at<std::uint32_t>(in.op[1]);
  const std::uint32_t number = numbers[__builtin_ctz(mask)];
  if (number >= kBarriers)
    throw Fault{FaultKind::kIllegalInstruction, in.line, "barrier " + std::to_string(number) + " does not exist"};
  // Lanes that name another barrier stay at the instruction and execute it later.
  Mask same = 0;
  for_lanes(mask, [&](int i) { same |= Mask(numbers[i] == number) << i; });
  mask = same;

  Barrier& barrier = barriers_[number];
  const auto op = static_cast<BarrierOp>(in.sub);
  std::uint32_t expected = in.op[2] == kNoOperand ? 0 : at<std::uint32_t>(in.op[2])[__builtin_ctz(mask)];
  if (expected % kLanes != 0)
    throw Fault{FaultKind::kIllegalInstruction, in.line,
                "barrier count " + std::to_string(expected) + " is no multiple of the warp size"};
  if (expected >= static_cast<std::uint32_t>(warp_count_) * kLanes) expected = 0;
  if (!barrier.active) {
    barrier = Barrier{};
    barrier.active = true;
    ++barriers_active_;
    barrier.expected = expected;
  }
  const int index = index_of(warp);
  barrier.again += static_cast<std::uint32_t>(__builtin_popcount(barrier.arrived[index] & mask));
  barrier.arrived[index] |= mask;
  if (in.op[3] != kNoOperand) {
    const Mask p = *at<Mask>(in.op[3]) & mask;
    barrier.popc += static_cast<std::uint32_t>(__builtin_popcount(p));
    barrier.all &= p == mask;
    barrier.any |= p != 0;
  }
  if (op == BarrierOp::kArrive) {
    for_lanes(mask, [&](int i) { ++warp.pc[i]; });
  } else {
    barrier.waiting[index] |= mask;
    warp.at_barrier |= mask;
  }
  if (complete(barrier)) release(barrier);
}

bool Block::complete(const Barrier& barrier) const {
  if (barrier.expected == 0) {
    for (int w = 0; w < warp_count_; ++w)
      if ((scratch_.warps[static_cast<std::size_t>(w)].live & ~barrier.arrived[w]) != 0) return false;
    return true;
  }
  std::uint32_t arrived = barrier.again;
  for (int w = 0; w < warp_count_; ++w) {
    if (barrier.arrived[w] == 0) continue;
    const Mask gone = ~scratch_.warps[static_cast<std::size_t>(w)].live;
    arrived += static_cast<std::uint32_t>(__builtin_popcount(barrier.arrived[w] | gone));
  }
  return arrived >= barrier.expected;
}

void Block::release(Barrier& barrier) {
  const Instruction* code = program_.code.data();
  for (int w = 0; w < warp_count_; ++w) {
    const Mask waiting = barrier.waiting[w];
    if (waiting == 0) continue;
    Warp& warp = scratch_.warps[static_cast<std::size_t>(w)];
    warp.at_barrier &= ~waiting;
    for_lanes(waiting, [&](int i) {
      const Instruction& in = code[warp.pc[i]++];
      switch (static_cast<BarrierOp>(in.sub)) {
        case BarrierOp::kSync:
        case BarrierOp::kArrive:
          return;
        case BarrierOp::kPopc:
          at<std::uint32_t>(warp, in.op[0], warp.frame[i])[i] = barrier.popc;
          return;
        case BarrierOp::kAnd:
        case BarrierOp::kOr:
          break;
      }
      if (in.op[0] == kNoOperand) return;
      const bool value = static_cast<BarrierOp>(in.sub) == BarrierOp::kAnd ? barrier.all : barrier.any;
      Mask& p = *at<Mask>(warp, in.op[0], warp.frame[i]);
      p = (p & ~(Mask{1} << i)) | Mask(value) << i;
    });
  }
  barrier.active = false;
  --barriers_active_;
}

void Block::check_barriers() {
  for (Barrier& barrier : barriers_)
    if (barrier.active && complete(barrier)) release(barrier);
}

}  // namespace gpuctl::softgpu::engine
