// Chooses and runs groups of lanes, and executes control flow. block.h explains the idea.
#include <algorithm>

#include "softgpu/engine/block.h"

namespace gpuctl::softgpu::engine {
namespace {

constexpr std::uint32_t kNever = 0xffffffff;

// Instructions that a warp issues before the next warp has its turn, and before lanes that wait behind others go first.
// It is large, so that loops of ordinary length are not interrupted, but still only a millisecond or so, to notice an
// abort.
constexpr std::int64_t kTurn = 65536;
// The same while lanes of the block sleep: it limits how late they wake up.
constexpr std::int64_t kTurnBesideSleepers = 4096;
// The cost, in instructions of a turn, of a read of memory that others may write: a spinning lane yields soon.
constexpr std::int64_t kPollCost = 512;

}  // namespace

void Block::set_pc(Warp& warp, Mask mask, std::uint32_t pc) {
  if (mask == kAllLanes)
    std::fill_n(warp.pc, kLanes, pc);
  else
    for_lanes(mask, [&](int i) { warp.pc[i] = pc; });
}

void Block::run_warp(Warp& warp) {
  ctx_.base[static_cast<int>(Base::kSpecial)] = warp.special.data();
  ctx_.local = warp.local;
  ctx_.local_frame = warp.local_frame;
  ctx_.carry = warp.carry;
  budget_ = sleepers_ ? kTurnBesideSleepers : kTurn;
  polled_in_turn_ = false;
  Mask ran = 0;
  while (budget_ > 0 && warp.runnable() != 0) {
    const Group group = pick_group(warp);
    ran |= group.mask;
    run_group(warp, group);
  }
  if (budget_ <= 0) {
    if ((warp.runnable() & ~ran) != 0) warp.gave_way |= ran;
    polled_ |= polled_in_turn_;
  }
  warp.carry = ctx_.carry;
}

Block::Group Block::pick_group(Warp& warp) const {
  const Mask runnable = warp.runnable();
  const int first = __builtin_ctz(runnable);
  bool together = true;
  for (int i = 0; i < kLanes; ++i)
    together &= !((runnable >> i) & 1) || (warp.pc[i] == warp.pc[first] && warp.frame[i] == warp.frame[first]);
  if (together) {
    warp.gave_way = 0;
    return {runnable, warp.pc[first], kNever};
  }
  Mask candidates = runnable & ~warp.gave_way;
  if (candidates == 0) {
    warp.gave_way = 0;
    candidates = runnable;
  }
  int lead = __builtin_ctz(candidates);
  for_lanes(candidates, [&](int i) {
    const std::size_t depth = warp.calls[i].size(), deepest = warp.calls[lead].size();
    if (depth > deepest || (depth == deepest && warp.pc[i] < warp.pc[lead])) lead = i;
  });
  Group group{0, warp.pc[lead], kNever};
  for_lanes(runnable, [&](int i) {
    if (warp.frame[i] != warp.frame[lead]) return;
    if (warp.pc[i] == group.pc)
      group.mask |= Mask{1} << i;
    else if (warp.pc[i] > group.pc)
      group.stop = std::min(group.stop, warp.pc[i]);
  });
  return group;
}

void Block::enter_frame(Warp& warp, Mask mask) {
  ctx_.base[static_cast<int>(Base::kFrame)] = warp.registers.data() + warp.frame[__builtin_ctz(mask)];
}

void Block::run_group(Warp& warp, Group group) {
  enter_frame(warp, group.mask);
  const Instruction* code = program_.code.data();
  const auto lanes = static_cast<std::uint64_t>(__builtin_popcount(group.mask));
  std::int64_t left = budget_;
  std::uint64_t issued = 0, threads = 0;
  while (true) {
    const Instruction& in = code[group.pc];
    Mask active = group.mask;
    if (in.guard != kNoOperand) {
      const Mask p = *at<Mask>(in.guard);
      active &= in.flags & kNegateGuard ? ~p : p;
    }
    --left;
    ++issued;
    threads += active == group.mask ? lanes : static_cast<std::uint64_t>(__builtin_popcount(active));
    if (in.flags & kPolls) {
      left -= kPollCost;
      polled_in_turn_ = true;
    }
    if (in.kind == Kind::kPlain) {
      if (active != 0) in.handler(ctx_, in, active);
      if (++group.pc == group.stop || left <= 0) break;
    } else if (active == 0) {
      if (++group.pc == group.stop || left <= 0) break;
    } else if (!control(warp, in, group, active)) {
      group.mask = 0;  // the lanes' program counters are stored already
      break;
    } else if (group.pc >= group.stop || left <= 0) {
      break;
    }
  }
  set_pc(warp, group.mask, group.pc);
  stats_.warp_instructions += issued;
  stats_.thread_instructions += threads;
  // sleep() takes the rest of the turn away; it must not be given back here.
  budget_ = std::min(budget_, left);
}

/// Executes one instruction of a kind other than kPlain. True: the group goes on as one at group.pc. False: the lanes
/// have their own program counters now, and a new group must be picked.
bool Block::control(Warp& warp, const Instruction& in, Group& group, Mask active) {
  const Mask others = group.mask & ~active;
  switch (in.kind) {
    case Kind::kPlain:
      return true;
    case Kind::kBranch:
      if (others == 0) {
        group.pc = in.target;
        return true;
      }
      set_pc(warp, active, in.target);
      set_pc(warp, others, group.pc + 1);
      return false;
    case Kind::kBranchTable:
      set_pc(warp, others, group.pc + 1);
      branch_table(warp, in, active);
      return false;
    case Kind::kExit:
      set_pc(warp, others, group.pc + 1);
      exit_lanes(warp, active);
      return false;
    case Kind::kActiveMask: {
      auto* d = at<std::uint32_t>(in.op[0]);
      for_lanes(active, [&](int i) { d[i] = active; });
      ++group.pc;
      return true;
    }
    case Kind::kCall:
      set_pc(warp, others, group.pc + 1);
      call(warp, in, group, active);
      return false;
    case Kind::kReturn:
      set_pc(warp, others, group.pc + 1);
      return_from(warp, in, active);
      return false;
    case Kind::kBarrier:
      set_pc(warp, others, group.pc + 1);
      set_pc(warp, active, group.pc);
      arrive(warp, in, active);
      return false;
    case Kind::kWarpSync:
      set_pc(warp, others, group.pc + 1);
      set_pc(warp, active, group.pc);
      warp_sync(warp, in, active);
      return false;
    case Kind::kSleep:
      set_pc(warp, group.mask, group.pc + 1);
      sleep(warp, in, active);
      return false;
    case Kind::kTrap:
      throw Fault{FaultKind::kTrap, in.line, "trap"};
  }
  return true;
}

void Block::branch_table(Warp& warp, const Instruction& in, Mask active) {
  const std::vector<std::uint32_t>& table = program_.branch_tables[in.target];
  const auto* index = at<std::uint32_t>(in.op[0]);
  for_lanes(active, [&](int i) {
    if (index[i] >= table.size())
      throw Fault{FaultKind::kInvalidPc, in.line, "branch index " + std::to_string(index[i]) + " is outside its table"};
    warp.pc[i] = table[index[i]];
  });
}

void Block::exit_lanes(Warp& warp, Mask mask) {
  warp.live &= ~mask;
  check_syncs(warp);
  if (barriers_active_ != 0) check_barriers();
}

void Block::sleep(Warp& warp, const Instruction& in, Mask mask) {
  const auto* time = at<std::uint32_t>(in.op[1]);
  const std::uint64_t now = clock_ns();
  for_lanes(mask, [&](int i) {
    warp.wake[i] = now + time[i];
    if (time[i] != 0) warp.asleep |= Mask{1} << i;
  });
  budget_ = 0;  // a good moment for the other warps
}

}  // namespace gpuctl::softgpu::engine
