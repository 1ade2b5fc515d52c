#include "softgpu/contexts/context.h"

#include <algorithm>
#include <map>

#include "softgpu/device/device.h"
#include "softgpu/device/printed.h"
#include "softgpu/host/per_thread.h"
#include "softgpu/table/device_limits.h"

namespace gpuctl::softgpu {

Context::Context(std::uint64_t id, unsigned flags, Device& device, const Memory& memory, std::size_t work_queues)
    : id_(id), flags_(flags), device_(device), memory_(memory, device.ordinal), queues_(work_queues) {
  for (auto& queue : queues_) queue = std::make_shared<WorkQueue>();
  legacy_ = std::make_shared<Stream>(this, Stream::Kind::kLegacy, kLeastPriority, 0, queue_for(0));
}

std::shared_ptr<WorkQueue> Context::queue_for(std::uint64_t stream_id) const {
  return queues_.empty() ? nullptr : queues_[stream_id % queues_.size()];
}

void Context::fail(CUresult error) {
  CUresult none = CUDA_SUCCESS;
  error_.compare_exchange_strong(none, error);
  stopped_.store(true);
}

void Context::end(CUresult error) {
  error_.store(error);
  stopped_.store(true);
}

std::shared_ptr<Stream> Context::create_stream(Stream::Kind kind, int priority, std::shared_ptr<GreenContext> green) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t id = next_stream_id_++;
  streams_.push_back(std::make_shared<Stream>(this, kind, priority, id, queue_for(id), std::move(green)));
  return streams_.back();
}

void Context::remove_stream(const std::shared_ptr<Stream>& stream) {
  const std::lock_guard lock(mutex_);
  // The legacy stream must still wait for the stream's unfinished work: a marker takes over that duty.
  const std::uint64_t last = stream->last();
  if (stream->kind() == Stream::Kind::kBlocking && last != 0 && !stream->finished(last)) {
    legacy_->submit([] {}, {{stream, last}});
  }
  forget_finished();
  if (last != 0 && !stream->finished(last)) destroyed_.push_back({stream, last});
  streams_.erase(std::remove(streams_.begin(), streams_.end(), stream), streams_.end());
  stream->close();
}

std::shared_ptr<Stream> Context::per_thread_stream() {
  struct Streams {
    std::map<Context*, std::shared_ptr<Stream>> of;
    ~Streams() {
      for (const auto& [context, stream] : of) context->remove_stream(stream);
    }
  };
  static auto* const streams = new PerThread<Streams>;
  std::shared_ptr<Stream>& stream = streams->get().of[this];
  if (stream == nullptr) stream = create_stream(Stream::Kind::kBlocking, kLeastPriority);
  return stream;
}

std::vector<StreamPoint> Context::points(bool with_non_blocking) {
  std::vector<StreamPoint> result;
  for (const auto& stream : streams_) {
    if (stream->kind() == Stream::Kind::kNonBlocking && !with_non_blocking) continue;
    const std::uint64_t last = stream->last();
    if (last != 0 && !stream->finished(last)) result.push_back({stream, last});
  }
  return result;
}

std::uint64_t Context::submit(const std::shared_ptr<Stream>& stream, std::function<void()> operation, bool waits) {
  if (stream->kind() == Stream::Kind::kNonBlocking) return stream->submit(std::move(operation), {}, waits);
  const std::lock_guard lock(mutex_);
  if (stream->kind() == Stream::Kind::kLegacy) return stream->submit(std::move(operation), points(false), waits);
  std::vector<StreamPoint> after;
  const std::uint64_t last = legacy_->last();
  if (last != 0 && !legacy_->finished(last)) after.push_back({legacy_, last});
  return stream->submit(std::move(operation), std::move(after), waits);
}

void Context::forget_finished() {
  std::erase_if(destroyed_, [](const StreamPoint& point) { return point.stream->finished(point.number); });
}

std::vector<StreamPoint> Context::all_points() {
  const std::lock_guard lock(mutex_);
  std::vector<StreamPoint> all = points(true);
  forget_finished();
  all.insert(all.end(), destroyed_.begin(), destroyed_.end());
  all.push_back({legacy_, legacy_->last()});
  return all;
}

void Context::synchronize() {
  for (const StreamPoint& point : all_points()) point.stream->wait_unless_stopped(point.number);
}

void Context::drain() {
  for (const StreamPoint& point : all_points()) point.stream->wait(point.number);
}

bool Context::idle() {
  return std::ranges::all_of(all_points(),
                             [](const StreamPoint& point) { return point.stream->finished(point.number); });
}

bool Context::legacy_idle() {
  const std::lock_guard lock(mutex_);
  return points(false).empty() && legacy_->finished(legacy_->last());
}

CUresult Context::enable_peer(const Context& peer) {
  const std::lock_guard lock(mutex_);
  if (!peers_.insert(&peer).second) return CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
  open_peers();
  return CUDA_SUCCESS;
}

CUresult Context::disable_peer(const Context& peer) {
  const std::lock_guard lock(mutex_);
  if (peers_.erase(&peer) == 0) return CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
  open_peers();
  return CUDA_SUCCESS;
}

/// The caller holds the mutex.
void Context::open_peers() {
  unsigned devices = 0;
  for (const Context* peer : peers_) devices |= 1U << peer->device().ordinal;
  memory_.set_peers(devices);
}

void Context::destroy() {
  const WritesWhatWasPrinted writes;
  end(CUDA_ERROR_CONTEXT_IS_DESTROYED);
  drain();
  const std::lock_guard lock(mutex_);
  for (const auto& stream : streams_) stream->close();
  streams_.clear();
  destroyed_.clear();
  legacy_->close();
}

std::vector<Context*>& context_stack() {
  static auto* const stacks = new PerThread<std::vector<Context*>>;
  return stacks->get();
}

}  // namespace gpuctl::softgpu
