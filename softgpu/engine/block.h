// One thread block while it runs. Internal to run_block().
//
// Every lane has its own program counter and call stack, so any lane can wait while others go on (independent thread
// scheduling). A warp repeatedly picks a group: the runnable lanes at the same instruction in the same call frame. It
// runs the group until the group diverges, waits, ends, or reaches the instruction of another group and joins it.
//
// The group picked is the one deepest in calls; among equals, the one with the lowest program counter. Compilers lay
// code out so that this lets stragglers catch up, and lanes meet again after a branch. This rule alone could starve
// lanes: some may spin at a low address on something that lanes at a higher one must do. So a warp's turn has a limited
// number of instructions, in which reads of volatile memory and atomics count many times, and lanes that have used up a
// turn yield to those that did not run.
#pragma once

#include <memory>
#include <vector>

#include "softgpu/engine/code.h"
#include "softgpu/engine/context.h"
#include "softgpu/engine/fault.h"

namespace gpuctl::softgpu::engine {

inline constexpr int kMaxWarps = 32;
inline constexpr int kBarriers = 16;

/// Memory with an alignment for vector instructions; keeps its contents when it grows.
class AlignedBytes {
 public:
  std::byte* data() const { return data_.get(); }
  std::size_t size() const { return size_; }
  void reserve(std::size_t size);

 private:
  struct Free {
    void operator()(std::byte* p) const;
  };
  std::unique_ptr<std::byte, Free> data_;
  std::size_t size_ = 0;
};

struct CallRecord {
  std::uint32_t return_pc;
  std::uint32_t site;
  std::uint32_t frame;
  std::uint32_t local_frame;
  const Function* function;
};

struct Warp {
  Mask live = 0;  ///< lanes that exist and have not exited
  Mask at_barrier = 0;
  Mask at_sync = 0;  ///< lanes that wait for other lanes of the warp at a .sync instruction
  Mask asleep = 0;
  Mask gave_way = 0;  ///< lanes that ran long while others waited; the others go first
  Mask carry = 0;
  std::uint32_t pc[kLanes];
  std::uint32_t frame[kLanes];        ///< offset of the current call's registers
  std::uint32_t local_frame[kLanes];  ///< offset of the current call's local memory
  const Function* function[kLanes];
  Mask members[kLanes];        ///< of the .sync instruction a lane waits at
  std::uint64_t wake[kLanes];  ///< of sleeping lanes, CLOCK_MONOTONIC ns
  std::vector<CallRecord> calls[kLanes];
  AlignedBytes registers;
  AlignedBytes special;
  std::byte* local = nullptr;  ///< local memory of lane 0

  Mask runnable() const { return live & ~(at_barrier | at_sync | asleep); }
};

struct Barrier {
  bool active = false;
  std::uint32_t expected = 0;  ///< threads; 0 = all of the block
  std::uint32_t again = 0;     ///< arrivals of threads that had arrived before in this phase
  std::uint32_t popc = 0;
  bool all = true;
  bool any = false;
  Mask arrived[kMaxWarps] = {};
  Mask waiting[kMaxWarps] = {};
};

struct BlockScratch::Impl {
  std::vector<Warp> warps;
  AlignedBytes shared;
  AlignedBytes local;
  AlignedBytes params;
};

class Block {
 public:
  Block(const BlockLaunch& launch, BlockScratch::Impl& scratch);
  Result<BlockStats> run();

 private:
  // block.cc
  void set_up_memory();
  void set_up_warp(int index);
  bool wake_sleepers();
  void sleep_until_first();
  [[nodiscard]] bool aborted() const;

  // flow.cc
  void run_warp(Warp& warp);
  struct Group {
    Mask mask;
    std::uint32_t pc;
    std::uint32_t stop;  ///< the instruction at which another group waits to be joined
  };
  Group pick_group(Warp& warp) const;
  void run_group(Warp& warp, Group group);
  bool control(Warp& warp, const Instruction& in, Group& group, Mask active);
  void enter_frame(Warp& warp, Mask mask);
  static void set_pc(Warp& warp, Mask mask, std::uint32_t pc);
  void branch_table(Warp& warp, const Instruction& in, Mask active);
  void exit_lanes(Warp& warp, Mask mask);
  void sleep(Warp& warp, const Instruction& in, Mask mask);

  // call.cc
  void call(Warp& warp, const Instruction& in, const Group& group, Mask active);
  void call_function(Warp& warp, const Instruction& in, const Function& callee, Mask mask, std::uint32_t pc);
  struct Assertion {
    std::string where;  ///< file, line and function
    std::string expression;
  };
  Assertion assertion_of(Warp& warp, const CallSite& site, int lane);
  [[noreturn]] void fail_assertion(Warp& warp, const Instruction& in, const CallSite& site, Mask mask);
  void call_builtin(Warp& warp, const Instruction& in, const CallSite& site, Mask mask);
  void return_from(Warp& warp, const Instruction& in, Mask mask);
  std::uint32_t free_frame(const Warp& warp, const Function& callee, std::uint32_t frame, Mask mask) const;
  std::byte* place(Warp& warp, int lane, const Place& place, std::uint32_t frame, std::uint32_t local_frame);
  void copy(Warp& warp, int lane, const Place& to, std::uint32_t to_frame, std::uint32_t to_local, const Place& from,
            std::uint32_t from_frame, std::uint32_t from_local);

  // barrier.cc
  void arrive(Warp& warp, const Instruction& in, Mask mask);
  bool complete(const Barrier& barrier) const;
  void release(Barrier& barrier);
  void check_barriers();

  // collective.cc
  void warp_sync(Warp& warp, const Instruction& in, Mask mask);
  void check_syncs(Warp& warp);
  void run_together(Warp& warp, const Instruction& in, Mask lanes);
  void run_collective(Warp& warp, Mask lanes);

  template <class T>
  T* at(Warp& warp, OperandRef ref, std::uint32_t frame) {
    const auto base = static_cast<Base>(ref >> 30);
    std::byte* start = base == Base::kFrame ? warp.registers.data() + frame : ctx_.base[static_cast<int>(base)];
    if (base == Base::kSpecial) start = warp.special.data();
    return reinterpret_cast<T*>(start + (ref & 0x3fffffff));
  }
  template <class T>
  T* at(OperandRef ref) {
    return reinterpret_cast<T*>(ctx_.base[ref >> 30] + (ref & 0x3fffffff));
  }
  int index_of(const Warp& warp) const { return static_cast<int>(&warp - scratch_.warps.data()); }

  const BlockLaunch& launch_;
  const Program::Impl& program_;
  const Function& entry_;
  BlockScratch::Impl& scratch_;
  Context ctx_;
  int warp_count_ = 0;
  std::uint32_t threads_ = 0;
  std::int64_t budget_ = 0;  ///< instructions the current warp may still issue in this turn
  bool polled_in_turn_ = false;
  bool polled_ = false;    ///< a turn ran out while reading memory others may write
  bool sleepers_ = false;  ///< some lane sleeps
  Barrier barriers_[kBarriers];
  int barriers_active_ = 0;
  BlockStats stats_;
};

/// Calls f(lane) for each lane of the mask.
template <class F>
inline void for_lanes(Mask mask, F f) {
  for (; mask != 0; mask &= mask - 1) f(__builtin_ctz(mask));
}

/// The text of a device printf. `arguments` is the packed argument buffer; only what the format names is read.
std::string format_print(const char* format, const std::byte* arguments);

}  // namespace gpuctl::softgpu::engine
