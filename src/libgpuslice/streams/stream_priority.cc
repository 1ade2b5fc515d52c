#include "libgpuslice/streams/stream_priority.h"

#include <algorithm>
#include <new>

#include "libgpuslice/base/capture.h"
#include "libgpuslice/base/current_context.h"
#include "libgpuslice/base/debug.h"
#include "libgpuslice/base/driver.h"
#include "libgpuslice/client/client.h"
#include "libgpuslice/streams/joining.h"

namespace gpuslice {

namespace ipc = gpuctl::ipc;
using ipc::PriorityBand;

namespace {

/// The daemon writes the same band for all devices of a client.
PriorityBand current_band() {
  const ipc::Grant* grant = Client::get().grant(0);
  return grant ? ipc::band_of(ipc::load(grant->flags)) : PriorityBand{};
}

/// The range is the same for all devices of a kind. It is queried once, in the context that is current then.
PriorityRange device_range() {
  static std::atomic<std::uint64_t> known{0};  // 1 << 32 | least << 16 | greatest, as 16-bit numbers
  if (const std::uint64_t packed = known.load(std::memory_order_relaxed))
    return {static_cast<std::int16_t>(packed >> 16), static_cast<std::int16_t>(packed)};
  PriorityRange range;
  if (driver().cuCtxGetStreamPriorityRange(&range.least, &range.greatest) != CUDA_SUCCESS) return {};
  known.store(std::uint64_t{1} << 32 | std::uint64_t{static_cast<std::uint16_t>(range.least)} << 16 |
              static_cast<std::uint16_t>(range.greatest));
  return range;
}

CUresult set_level(CUstream stream, int level) {
  if (!driver().cuStreamSetAttribute) return CUDA_ERROR_NOT_SUPPORTED;
  CUstreamAttrValue value{};
  value.priority = level;
  return driver().cuStreamSetAttribute(stream, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value);
}

}  // namespace

thread_local constinit StreamPriorities::Followed StreamPriorities::t_followed{};

StreamPriorities& StreamPriorities::get() {
  static auto* instance = new StreamPriorities;  // programs launch in destructors too
  return *instance;
}

int StreamPriorities::for_new(int own) const {
  if (!Client::get().wanted()) return own;
  return banded(own, current_band(), device_range());
}

void StreamPriorities::made(CUstream stream, int own) {
  if (!Client::get().wanted()) return;
  const PriorityBand band = current_band();
  const CUcontext context = context_of(stream);
  std::lock_guard lock(mutex_);
  ++g_launch_words.streams;
  streams_[stream_key(stream)] = {.own = own, .band = band, .context = context};
}

void StreamPriorities::copied(CUstream to, CUstream from) {
  std::lock_guard lock(mutex_);
  ++g_launch_words.streams;
  const auto found = streams_.find(stream_key(from));
  if (found == streams_.end())
    streams_.erase(stream_key(to));
  else
    streams_[stream_key(to)] = Stream(found->second);
}

void StreamPriorities::destroyed(CUstream stream) {
  std::lock_guard lock(mutex_);
  ++g_launch_words.streams;
  streams_.erase({stream, 0});
}

void StreamPriorities::forget(CUcontext context) {
  std::lock_guard lock(mutex_);
  ++g_launch_words.streams;
  std::erase_if(streams_, [context](const auto& one) { return one.second.context == context; });
}

std::optional<int> StreamPriorities::own(CUstream stream) {
  std::lock_guard lock(mutex_);
  const auto found = streams_.find(stream_key(stream));
  return found == streams_.end() ? std::nullopt : std::optional(found->second.own);
}

std::optional<int> StreamPriorities::before_launch(CUstream handle) {
  const PriorityBand band = current_band();
  std::atomic<bool>& used = g_launch_words.bands_used;
  if (band == PriorityBand{} && !used.load(std::memory_order_relaxed)) return std::nullopt;
  used.store(true, std::memory_order_relaxed);
  std::lock_guard lock(mutex_);
  const auto [entry, added] = streams_.try_emplace(stream_key(handle));
  Stream& stream = entry->second;
  if (added) stream.context = context_of(handle);
  if (added && driver().cuStreamGetPriority) driver().cuStreamGetPriority(handle, &stream.own);
  if (stream.band != band && !capturing_anything()) {
    join_before(handle);  // what follows goes to another confined stream, with the new priority
    stream.band = band;
    stream.level = banded(stream.own, band, device_range());
    const CUresult result = set_level(handle, stream.level);
    stream.by_launch = result != CUDA_SUCCESS;
    ++g_launch_words.streams;
    debug("stream %p: priority %d of the program is %d on the GPU, of rank %u of %u (%d)", static_cast<void*>(handle),
          stream.own, stream.level, band.rank, band.count, result);
  }
  if (stream.by_launch) return stream.level;
  if (stream.band == band)
    t_followed = {handle, ipc::pack_band(band), g_launch_words.streams.load(std::memory_order_relaxed)};
  return std::nullopt;
}

BandedLevel StreamPriorities::banded_now(int level) const {
  return {.level = level, .band = current_band()};
}

StreamPriorities::Lent::Lent(CUstream stream, const BandedLevel& level) : stream_(stream) {
  const PriorityRange device = device_range();
  int own = 0;
  if (const auto known = StreamPriorities::get().own(stream))
    own = *known;
  else if (!driver().cuStreamGetPriority || driver().cuStreamGetPriority(stream, &own) != CUDA_SUCCESS)
    return;
  const int asked = asked_for(level.level, level.band, device);
  if (banded(own, level.band, device) == banded(asked, level.band, device)) return;
  const PriorityBand band = current_band();
  const int now = banded(own, band, device), wanted = banded(asked, band, device);
  if (now != wanted && set_level(stream, wanted) == CUDA_SUCCESS) before_ = now;
}

StreamPriorities::Lent::~Lent() {
  if (before_) set_level(stream_, *before_);
}

void StreamPriorities::forget_after_fork() {
  ++g_launch_words.streams;
  new (&get()) StreamPriorities;
}

}  // namespace gpuslice
