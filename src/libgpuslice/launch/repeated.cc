#include "libgpuslice/launch/repeated.h"

#include <algorithm>
#include <new>
#include <utility>

#include "libgpuslice/base/clock.h"
#include "libgpuslice/base/current_context.h"
#include "libgpuslice/streams/own_streams.h"
#include "libgpuslice/streams/stream_priority.h"

namespace gpuslice {

namespace ipc = gpuctl::ipc;

thread_local constinit RepeatedLaunches* RepeatedLaunches::t_latest = nullptr;

/// Owns RepeatedLaunches::t_latest. Programs launch in destructors of their threads too.
struct RepeatedOwner {
  RepeatedLaunches* latest = new (std::nothrow) RepeatedLaunches;
  ~RepeatedOwner() {
    RepeatedLaunches::t_latest = nullptr;
    delete std::exchange(latest, nullptr);
  }
};

RepeatedLaunches* RepeatedLaunches::make() {
  static thread_local RepeatedOwner owner;
  return t_latest = owner.latest;
}

std::size_t RepeatedLaunches::place_of(const KernelInfo* kernel, const Shape& shape) {
  const std::uint64_t mixed = (reinterpret_cast<std::uintptr_t>(kernel) >> 6) + (std::uint64_t{shape.blocks} << 32) +
                              (std::uint64_t{shape.shared} << 16) + shape.threads;
  return mixed * 0x9e3779b97f4a7c15u >> 54;
}

const RepeatedLaunches::Decision* RepeatedLaunches::find(const KernelInfo* kernel, const Shape& shape,
                                                         std::uint32_t epoch) const {
  const Decision& made = decisions_[place_of(kernel, shape)];
  const bool holds = made.kernel == kernel && made.epoch == epoch && made.shape == shape &&
                     made.generation == g_launch_words.kernels.load(std::memory_order_relaxed);
  return holds ? &made : nullptr;
}

void RepeatedLaunches::note(Context& context, Lane& lane, const Opaque::Launch& asked, std::uint64_t suspect) {
  RepeatedLaunches* latest = t_latest ? t_latest : make();
  if (!latest) return;
  const Shape shape{asked.blocks, asked.threads, asked.shared};
  if (std::exchange(latest->page_, asked.decided.page) != asked.decided.page) latest->decisions_ = {};
  latest->context_ = &context;
  t_latest_lane = {lane.stream, &lane, g_launch_words.streams.load(std::memory_order_relaxed)};
  latest->decisions_[place_of(asked.kernel, shape)] = {
      asked.kernel, shape,    asked.decided.epoch,   g_launch_words.kernels.load(std::memory_order_relaxed),
      suspect,      &context, lane.place().there.sms};
}

RepeatedLaunches::Turn::Turn(CUfunction function, CUstream stream, const Shape& shape) {
  const LaunchWords& words = g_launch_words;
  const RepeatedLaunches* latest = t_latest;
  const ipc::Stub* page = words.page.load(std::memory_order_acquire);
  Lane* lane = t_latest_lane.of(stream);
  if (!latest || !lane || latest->page_ != page || words.captures.load(std::memory_order_relaxed) > 0 ||
      words.memory_ran_out.load(std::memory_order_relaxed))
    return;
  const RecentKernel* known = Kernels::find_recent(function);
  if (!known || !known->kernel) return;
  Context& context = *latest->context_;
  const int device = context.view().device_index();
  const ipc::Grant& grant = page->grant[device];
  const std::uint32_t flags = ipc::load(grant.flags), epoch = ipc::load(grant.epoch);
  const ipc::Mode mode = ipc::mode_of(flags);
  const Decision* const made = latest->find(known->kernel, shape, epoch);
  if (!made || made->context != &context || known->kernel->stuck.load(std::memory_order_relaxed) ||
      mode == ipc::Mode::free || ipc::load(grant.jobs) != 0 || !StreamPriorities::follows(stream, flags) ||
      (known->kernel->persistent && !ipc::is_confined(mode)) || context.ended() ||
      current_context() != context.handle() || !may_use_own_streams(kQueuesToMove))
    return;
  if (!lane->mutex.try_lock()) return;
  // From here on nothing begins in the stream that needs an idle device.
  const int open = words.open_lanes.load(std::memory_order_acquire);
  if (lane->open() && (open == 1 || lane->apart) && lane->launches % Lane::kMarkEvery != 0 &&
      !context.opaque().settles() && lane->place().there.sms >= made->sms &&
      lane->busy.load(std::memory_order_relaxed) && lane->decided == context.view().version()) {
    lane_ = lane;
    context_ = &context;
    kernel_ = known->kernel;
    lane->blocks = std::max(lane->blocks, shape.blocks);
    lane->latest = kernel_->name.c_str();
    lane->latest_ns = monotonic_ns();
    if (made->suspect != 0) lane->suspect = made->suspect;
    return;
  }
  lane->mutex.unlock();
}

RepeatedLaunches::Turn::~Turn() {
  if (lane_) lane_->mutex.unlock();
}

void RepeatedLaunches::Turn::launched() {
  lane_->leave();
  if (++lane_->launches % Lane::kMarkEvery == 0) lane_->set_mark();
  kernel_->count_launch();
  context_->count_original_launch();
}

}  // namespace gpuslice
