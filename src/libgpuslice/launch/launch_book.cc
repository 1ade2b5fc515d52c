#include "libgpuslice/launch/launch_book.h"

#include <algorithm>

#include "ipc/stub_map.h"

namespace gpuslice {

namespace ipc = gpuctl::ipc;

namespace {

/// Workers that come late to a complete launch post that they left, in no certain order. After this time, with none of
/// the agent's grids running, all of them have left, whatever the last post says.
constexpr std::uint64_t kSurelyGoneNs = 100'000'000;

}  // namespace

Stream& LaunchBook::stream_of(CUstream handle) {
  std::unique_ptr<Stream>& stream = streams_[stream_key(handle)];
  if (!stream) {
    stream = std::make_unique<Stream>();
    stream->key = stream_key(handle);
    stream->handle = handle;
  }
  return *stream;
}

void LaunchBook::stream_destroyed(CUstream handle) {
  auto found = streams_.find({handle, 0});
  if (found == streams_.end()) return;
  if (!found->second->outstanding.empty()) orphans_.push_back(std::move(found->second));
  streams_.erase(found);
}

std::optional<std::uint32_t> LaunchBook::take_slot(const Stream& stream) {
  if (stops_ > 0 || stream.queued >= kMaxQueuedPerStream) return std::nullopt;
  return slots_.take();
}

std::optional<std::vector<std::uint32_t>> LaunchBook::take_slots(const Stream& stream, std::size_t count) {
  if (stops_ > 0 || stream.queued >= kMaxQueuedPerStream) return std::nullopt;
  return slots_.take(count);
}

void LaunchBook::add(Stream& stream, std::unique_ptr<Launch> owned) {
  owned->number = next_number();
  if (stream.outstanding.empty()) active_.push_back(&stream);
  stream.queued += owned->graph.counts;
  stream.outstanding.push_back(std::move(owned));
  ++outstanding_;
}

const Launch* LaunchBook::oldest() const {
  const Launch* oldest = nullptr;
  for (const Stream* stream : active_) {
    const Launch* front = stream->outstanding.front().get();
    if (!oldest || front->number < oldest->number) oldest = front;
  }
  return oldest;
}

LaunchBook::Progress LaunchBook::progress_of(const Stream& stream) const {
  Progress progress{.mark = 0xcbf29ce484222325};
  const auto mix = [&](std::uint64_t part) { progress.mark = (progress.mark ^ part) * 0x100000001b3; };  // FNV-1a
  mix(resumes_);
  if (!stream.outstanding.empty()) {
    stream.visit_heads([&](const Launch& head) {
      const gpuctl::ptx::HostSlot& slot = host(head);
      const bool started = ipc::load(slot.started), done = ipc::load(slot.done);
      progress.runs |= started && !done;
      for (const std::uint64_t part : {head.number, std::uint64_t{started}, std::uint64_t{done},
                                       std::uint64_t{ipc::load(slot.progress)}, std::uint64_t{ipc::load(slot.left)}})
        mix(part);
    });
  }
  progress.mark = std::max<std::uint64_t>(progress.mark, 1);
  return progress;
}

LaunchBook::Progress LaunchBook::progress() const {
  Progress all{.mark = 1};
  for (const Stream* stream : active_) {
    const Progress one = progress_of(*stream);
    all.mark = all.mark * 31 + one.mark;
    all.runs |= one.runs;
  }
  all.mark = std::max<std::uint64_t>(all.mark, 1);
  return all;
}

void LaunchBook::let_holders_work() const {
  for (const Stream* stream : active_) {
    for (const auto& launch : stream->outstanding) ipc::store(host(*launch).lone, 1u);
  }
}

bool LaunchBook::is_over(const Launch& launch) const {
  return launch.refused() || ipc::load(host(launch).done);
}

void LaunchBook::take_oldest(Stream& stream, std::uint64_t now_ns) {
  std::unique_ptr<Launch> launch = std::move(stream.outstanding.front());
  stream.outstanding.pop_front();
  stream.queued -= launch->graph.counts;
  --outstanding_;
  if (launch->refused()) {
    slots_.give_back(launch->slot, false);
  } else {
    launch->measured.complete_ns = now_ns;
    leaving_.push_back(std::move(launch));
  }
}

void LaunchBook::drop_empty_streams() {
  std::erase_if(active_, [](const Stream* stream) { return stream->outstanding.empty(); });
  std::erase_if(orphans_, [](const auto& stream) { return stream->outstanding.empty(); });
}

void LaunchBook::give_back_left(bool none_runs, std::uint64_t now_ns) {
  std::erase_if(leaving_, [&](const std::unique_ptr<Launch>& launch) {
    if (!launch->issued.load(std::memory_order_acquire)) return false;  // its thread still uses it
    const bool all_posted = ipc::load(host(*launch).left) == launch->launched;
    if (!all_posted && !(none_runs && now_ns - launch->measured.complete_ns > kSurelyGoneNs)) return false;
    slots_.give_back(launch->slot, true);
    return true;
  });
}

}  // namespace gpuslice
