#include "libgpuslice/launch/stream_jobs.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "ipc/stub_map.h"
#include "libgpuslice/client/client.h"
#include "libgpuslice/launch/job_head.h"

namespace gpuslice {

namespace ipc = gpuctl::ipc;

void StreamJobs::find_work() {
  work_.clear();
  for (Stream* stream : book_.active()) {
    Work& work = work_[stream->key];
    if (!work.persistent) work.persistent = stream;
  }
  for (const auto& [key, original] : opaque_.streams()) work_[key].original = &original;
}

/// Places of streams without work become free. Those that have work and no place get one, as far as there are any.
void StreamJobs::seat_streams() {
  for (Place& place : places_) place.taken = place.taken && work_.contains(place.stream);
  for (const auto& [key, work] : work_) {
    const auto has_it = [&key = key](const Place& place) { return place.taken && place.stream == key; };
    if (std::any_of(places_.begin(), places_.end(), has_it)) continue;
    const auto free = std::find_if(places_.begin(), places_.end(), [](const Place& place) { return !place.taken; });
    if (free == places_.end()) return;
    free->taken = true;
    free->stream = key;
  }
  for (Place& place : places_)
    if (place.taken) place.known = StreamLevels::get().of(place.stream);
}

StreamTurns::Place StreamJobs::turn_place(const Place& place) const {
  StreamTurns::Place result;
  if (!place.taken) return result;
  result.busy = true;
  const Work& work = work_.at(place.stream);
  if (work.persistent) {
    const Launch& head = *work.persistent->outstanding.front();
    const gpuctl::ptx::HostSlot& host = book_.host(head);
    result.begun = ipc::load(host.started) != 0;
    result.progress = (head.number << 32) + ipc::load(host.progress);
  }
  if (work.original) {
    result.begun |= work.original->begun;
    result.progress += work.original->job.issued_ns;
  }
  return result;
}

bool StreamJobs::look(std::uint64_t now_ns) {
  const bool on = view_.streams_are_jobs();
  if (!on && !std::exchange(on_, false)) return false;
  on_ = on;
  if (!on) {
    for (std::uint32_t i = 0; i < places_.size(); ++i) places_[i].taken = false;
    work_.clear();
    held_ = {};
    return hold();
  }
  find_work();
  seat_streams();
  StreamTurns::Places places;
  std::transform(places_.begin(), places_.end(), places.begin(), [this](const Place& p) { return turn_place(p); });
  held_ = turns_.look(places, view_.turns(), now_ns);
  return hold();
}

/// Streams that share a limit with others (StreamLimits::choose()) cannot be held.
bool StreamJobs::hold() {
  bool changed = false;
  for (Stream* stream : book_.active()) {
    const auto its = std::find_if(places_.begin(), places_.end(),
                                  [&](const Place& place) { return place.taken && place.stream == stream->key; });
    const bool held = its != places_.end() && stream->limit != 0 && (held_.evicted >> (its - places_.begin()) & 1) != 0;
    changed |= std::exchange(stream->held, held) != held;
    if (held) stream->outstanding.front()->measured.held = true;
  }
  return changed;
}

bool StreamJobs::gated(const StreamKey& stream) const {
  for (std::uint32_t i = 0; i < places_.size(); ++i)
    if (places_[i].taken && places_[i].stream == stream) return (held_.gated >> i & 1) != 0;
  return false;
}

bool StreamJobs::publish(bool each) {
  if (on_) {  // the streams may be others than at the latest look
    find_work();
    seat_streams();
  }
  bool news = false;
  for (std::uint32_t i = 0; i < places_.size(); ++i) news |= publish_place(i, each);
  return news;
}

bool StreamJobs::publish_place(std::uint32_t index, bool each) {
  Place& place = places_[index];
  const auto found = place.taken ? work_.find(place.stream) : work_.end();
  if (found == work_.end() && place.told == 0) return false;
  const Launch* persistent = nullptr;
  const OpaqueWork::InStream* original = nullptr;
  if (found != work_.end()) {
    persistent = found->second.persistent ? found->second.persistent->outstanding.front().get() : nullptr;
    original = found->second.original;
  }
  if (!original_first(original ? &original->job : nullptr, persistent, book_)) original = nullptr;
  if (original && original->job.issued_ns != place.original_ns) {
    place.original_ns = original->job.issued_ns;
    place.original = book_.next_number();
  }
  HeadOfStream of{.stream = place.known.number, .level = place.known.level};
  std::optional<HeadFields> fields;
  std::uint64_t number = 0;
  if (original) {
    fields = fields_of(original->job);
    of.begun = original->begun;
    number = place.original;
  } else if (persistent) {
    fields = fields_of(*persistent, book_.host(*persistent));
    of.begun = ipc::load(book_.host(*persistent).started) != 0;
    number = persistent->number;
  }
  const auto device = static_cast<std::size_t>(view_.device_index());
  write_head(ipc::stream_head(*Client::get().stub(), device, index), fields, original != nullptr, number, of);
  const std::uint64_t before = std::exchange(place.told, number);
  return number != before && (number == 0 || before == 0 || each);
}

void StreamJobs::forget_told() {
  for (Place& place : places_) place.told = 0;
}

}  // namespace gpuslice
