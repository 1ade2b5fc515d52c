#include "softgpu/engine/block.h"

#include <sched.h>
#include <time.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>

namespace gpuctl::softgpu::engine {
namespace {

constexpr std::size_t kAlign = 128;
constexpr std::uint64_t kNapNs = 5'000'000;  // the longest sleep between two looks at the abort flag

}  // namespace

void AlignedBytes::Free::operator()(std::byte* p) const {
  std::free(p);
}

void AlignedBytes::reserve(std::size_t size) {
  if (size <= size_) return;
  size = round_up(std::max(size, size_ * 2), kAlign);
  auto* grown = static_cast<std::byte*>(std::aligned_alloc(kAlign, size));
  if (grown == nullptr) throw std::bad_alloc();
  if (size_ != 0) std::memcpy(grown, data_.get(), size_);
  data_.reset(grown);
  size_ = size;
}

BlockScratch::BlockScratch() : impl_(std::make_unique<Impl>()) {}
BlockScratch::~BlockScratch() = default;
BlockScratch::BlockScratch(BlockScratch&&) noexcept = default;
BlockScratch& BlockScratch::operator=(BlockScratch&&) noexcept = default;

Block::Block(const BlockLaunch& launch, BlockScratch::Impl& scratch)
    : launch_(launch), program_(launch.program->impl()), entry_(*launch.kernel->code), scratch_(scratch) {
  threads_ = launch.block.x * launch.block.y * launch.block.z;
  warp_count_ = static_cast<int>((threads_ + kLanes - 1) / kLanes);
  scratch_.warps.resize(std::max(scratch_.warps.size(), static_cast<std::size_t>(warp_count_)));
  set_up_memory();
  for (int w = 0; w < warp_count_; ++w) set_up_warp(w);
}

void Block::set_up_memory() {
  const Kernel& kernel = *launch_.kernel;
  ctx_.shared_bytes = static_cast<std::uint32_t>(round_up(kernel.static_shared, kLocalAlign)) + launch_.dynamic_shared;
  scratch_.shared.reserve(ctx_.shared_bytes + kAlign);
  ctx_.shared = scratch_.shared.data();
  ctx_.local_bytes = entry_.stack_bytes;
  scratch_.local.reserve(std::size_t{ctx_.local_bytes} * kLanes * static_cast<std::size_t>(warp_count_) + kAlign);
  ctx_.param_bytes = kernel.param_bytes;
  scratch_.params.reserve(kernel.param_bytes + kAlign);
  if (kernel.param_bytes != 0) std::memcpy(scratch_.params.data(), launch_.params, kernel.param_bytes);
  ctx_.params = scratch_.params.data();
  ctx_.base[static_cast<int>(Base::kPool)] = program_.pool;
  ctx_.memory = launch_.memory;
  const auto allow = [this](const void* begin, std::size_t size) {
    if (size == 0) return;
    ctx_.ranges.begin[ctx_.ranges.used] = reinterpret_cast<std::uint64_t>(begin);
    ctx_.ranges.size[ctx_.ranges.used++] = size;
  };
  if (launch_.memory == nullptr) return allow(reinterpret_cast<const void*>(kNullPage), ~std::size_t{0} - kNullPage);
  // At most RangeCache::kFixed ranges, which are never replaced.
  allow(ctx_.shared, ctx_.shared_bytes);
  allow(scratch_.local.data(), std::size_t{ctx_.local_bytes} * kLanes * static_cast<std::size_t>(warp_count_));
  allow(ctx_.params, ctx_.param_bytes);
  allow(program_.memory, program_.memory_bytes);
}

void Block::set_up_warp(int index) {
  Warp& warp = scratch_.warps[static_cast<std::size_t>(index)];
  const std::uint32_t first = static_cast<std::uint32_t>(index) * kLanes;
  const std::uint32_t lanes = std::min<std::uint32_t>(kLanes, threads_ - first);
  warp.live = lanes == kLanes ? kAllLanes : (Mask{1} << lanes) - 1;
  warp.at_barrier = warp.at_sync = warp.asleep = warp.gave_way = warp.carry = 0;
  std::fill_n(warp.pc, kLanes, entry_.first);
  std::fill_n(warp.frame, kLanes, 0);
  std::fill_n(warp.local_frame, kLanes, 0);
  std::fill_n(warp.function, kLanes, &entry_);
  for (auto& calls : warp.calls) calls.clear();
  warp.registers.reserve(entry_.register_bytes + kAlign);
  std::memset(warp.registers.data(), 0, entry_.register_bytes);
  warp.local = scratch_.local.data() + std::size_t{ctx_.local_bytes} * first;

  warp.special.reserve(kSpecialBytes);
  const auto slot = [&warp](Special which) {
    return reinterpret_cast<std::uint32_t*>(warp.special.data() + which * kSlot32);
  };
  const auto fill = [&](Special which, std::uint32_t value) { std::fill_n(slot(which), kLanes, value); };
  const auto fill3 = [&](Special which, Dim3 value) {
    fill(which, value.x);
    fill(static_cast<Special>(which + 1), value.y);
    fill(static_cast<Special>(which + 2), value.z);
  };
  fill3(kNtidX, launch_.block);
  fill3(kCtaidX, launch_.ctaid);
  fill3(kNctaidX, launch_.grid);
  fill(kWarpId, static_cast<std::uint32_t>(index));
  fill(kNwarpId, static_cast<std::uint32_t>(warp_count_));
  fill(kSmId, launch_.smid);
  fill(kNsmId, launch_.nsmid);
  fill(kDynamicSmemSize, launch_.dynamic_shared);
  fill(kDynamicSmemOffset, ctx_.shared_bytes - launch_.dynamic_shared);
  fill(kTotalSmemSize, ctx_.shared_bytes);
  std::fill_n(reinterpret_cast<std::uint64_t*>(warp.special.data() + kGridIdOffset), kLanes, launch_.gridid);
  for (std::uint32_t i = 0; i < kLanes; ++i) {
    const std::uint32_t thread = first + i;
    slot(kTidX)[i] = thread % launch_.block.x;
    slot(kTidY)[i] = thread / launch_.block.x % launch_.block.y;
    slot(kTidZ)[i] = thread / launch_.block.x / launch_.block.y;
    slot(kLaneId)[i] = i;
    slot(kLanemaskEq)[i] = Mask{1} << i;
    slot(kLanemaskLt)[i] = (Mask{1} << i) - 1;
    slot(kLanemaskLe)[i] = ((Mask{1} << i) - 1) | Mask{1} << i;
    slot(kLanemaskGt)[i] = ~(((Mask{1} << i) - 1) | Mask{1} << i);
    slot(kLanemaskGe)[i] = ~((Mask{1} << i) - 1);
  }
}

bool Block::aborted() const {
  return launch_.abort != nullptr && launch_.abort->load(std::memory_order_relaxed);
}

/// True if some lane woke up. Also sets sleepers_.
bool Block::wake_sleepers() {
  sleepers_ = false;
  bool woke = false;
  std::uint64_t now = 0;
  for (int w = 0; w < warp_count_; ++w) {
    Warp& warp = scratch_.warps[static_cast<std::size_t>(w)];
    if (warp.asleep == 0) continue;
    if (now == 0) now = clock_ns();
    for_lanes(warp.asleep, [&](int i) {
      if (warp.wake[i] > now) return;
      warp.asleep &= ~(Mask{1} << i);
      woke = true;
    });
    sleepers_ |= warp.asleep != 0;
  }
  return woke;
}

void Block::sleep_until_first() {
  std::uint64_t first = clock_ns() + kNapNs;
  for (int w = 0; w < warp_count_; ++w) {
    const Warp& warp = scratch_.warps[static_cast<std::size_t>(w)];
    for_lanes(warp.asleep, [&](int i) { first = std::min(first, warp.wake[i]); });
  }
  const timespec until{static_cast<time_t>(first / 1000000000u), static_cast<long>(first % 1000000000u)};
  clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr);
}

Result<BlockStats> Block::run() {
  const auto failure = [this](std::uint32_t line, const std::string& what, FaultKind kind = FaultKind::kNone) {
    if (launch_.fault != nullptr) *launch_.fault = kind;
    return fail("kernel " + launch_.kernel->name + (line != 0 ? ", PTX line " + std::to_string(line) : "") +
                ", block (" + std::to_string(launch_.ctaid.x) + "," + std::to_string(launch_.ctaid.y) + "," +
                std::to_string(launch_.ctaid.z) + "): " + what);
  };
  try {
    while (true) {
      bool ran = false, alive = false;
      for (int w = 0; w < warp_count_; ++w) {
        Warp& warp = scratch_.warps[static_cast<std::size_t>(w)];
        if (warp.runnable() != 0) {
          run_warp(warp);
          ran = true;
          if (aborted()) return failure(0, "aborted");
        }
        alive |= warp.live != 0;
      }
      if (!alive) return stats_;
      if (launch_.pace != nullptr) launch_.pace(launch_.pace_context, stats_.warp_instructions);
      if (aborted()) return failure(0, "aborted");
      const bool woke = wake_sleepers();
      if (polled_) {  // it may wait for another OS thread
        polled_ = false;
        sched_yield();
      }
      if (ran || woke) continue;
      if (!sleepers_) return failure(0, "all remaining threads wait for each other", FaultKind::kTrap);
      sleep_until_first();
    }
  } catch (const Fault& fault) {
    return failure(fault.line, fault.message, fault.kind);
  } catch (const std::bad_alloc&) {
    return failure(0, "no memory for its registers");
  }
}

Result<BlockStats> run_block(const BlockLaunch& launch, BlockScratch& scratch) {
  const std::uint64_t threads = std::uint64_t{launch.block.x} * launch.block.y * launch.block.z;
  if (threads == 0 || threads > kMaxWarps * kLanes)
    return fail("kernel " + launch.kernel->name + ": a block of " + std::to_string(threads) + " threads");
  try {
    return Block(launch, scratch.impl()).run();
  } catch (const std::bad_alloc&) {
    return fail("kernel " + launch.kernel->name + ": no memory for its block");
  }
}

}  // namespace gpuctl::softgpu::engine
