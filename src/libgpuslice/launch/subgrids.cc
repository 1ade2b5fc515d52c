#include "libgpuslice/launch/subgrids.h"

#include <algorithm>

#include "libgpuslice/base/clock.h"
#include "libgpuslice/base/driver.h"

namespace gpuslice {

namespace {

CUevent timing_event() {
  CUevent event = nullptr;
  if (!driver().cuEventCreate || driver().cuEventCreate(&event, CU_EVENT_DEFAULT) != CUDA_SUCCESS) return nullptr;
  return event;
}

}  // namespace

SubgridQueue::SubgridQueue() {
  for (Place& place : places_) {
    place.begun = timing_event();
    place.ended = timing_event();
  }
}

SubgridQueue::~SubgridQueue() {
  for (const Place& place : places_) {
    for (CUevent event : {place.begun, place.ended}) {
      if (event) driver().cuEventDestroy_v2(event);
    }
  }
}

/// An event that the driver could not make counts as reached.
bool SubgridQueue::look(Place& place) {
  if (!place.over) place.over = !place.ended || driver().cuEventQuery(place.ended) != CUDA_ERROR_NOT_READY;
  return place.over;
}

void SubgridQueue::begin(CUstream stream, bool first) {
  const std::lock_guard lock(mutex_);
  Place& mine = place(next_);
  mine.first = first && mine.begun && driver().cuEventRecord(mine.begun, stream) == CUDA_SUCCESS;
}

void SubgridQueue::launched(CUstream stream, const Subgrid& subgrid) {
  const std::lock_guard lock(mutex_);
  Place& mine = place(next_);
  Place& before = place(next_ - 1);
  mine.subgrid = subgrid;
  mine.stream = stream;
  mine.follows = !mine.first && next_ > 1 && before.stream == stream && !look(before);
  mine.over = !mine.ended || driver().cuEventRecord(mine.ended, stream) != CUDA_SUCCESS;
  if (!series_.empty() && series_.back().open) {
    Series& series = series_.back();
    series.useful &= series.last == 0 || series.confined == subgrid.confined;
    series.confined = subgrid.confined;
    series.waves += subgrid.waves;
    series.last = next_;
  }
  ++next_;
}

/// Of one that is complete; 0: not known.
double SubgridQueue::gpu_ns(std::size_t number) {
  const Place& mine = place(number);
  if (!mine.first && !mine.follows) return 0;
  const CUevent from = mine.first ? mine.begun : place(number - 1).ended;
  float ms = 0;
  if (!driver().cuEventElapsedTime || !from || !mine.ended) return 0;
  if (driver().cuEventElapsedTime(&ms, from, mine.ended) != CUDA_SUCCESS) return 0;
  return std::max(0.0, 1e6 * static_cast<double>(ms));
}

std::optional<SubgridQueue::Ended> SubgridQueue::take_ended() {
  const std::lock_guard lock(mutex_);
  if (oldest_ == next_ || !look(place(oldest_))) return std::nullopt;
  const Subgrid& subgrid = place(oldest_).subgrid;
  return Ended{subgrid.number, retire() / subgrid.waves};
}

/// Takes the oldest one out, which is complete. Returns the time it took; 0: not known.
double SubgridQueue::retire() {
  const std::size_t number = oldest_++;
  const double ns = gpu_ns(number);
  if (series_.empty() || number < series_.front().first) return ns;
  Series& series = series_.front();
  if (ns > 0) {
    series.known_ns += ns;
    series.known_waves += place(number).subgrid.waves;
  }
  if (!series.open && number == series.last) finish_series();
  return ns;
}

/// The oldest series is over.
void SubgridQueue::finish_series() {
  const Series& series = series_.front();
  if (series.useful && series.known_waves > 0 && 2 * series.known_waves >= series.waves)
    timed_.push_back({.job = series.job,
                      .sms = series.confined,
                      .gpu_ns = static_cast<std::uint64_t>(series.known_ns / series.known_waves * series.waves),
                      .done_ns = monotonic_ns()});
  series_.pop_front();
}

void SubgridQueue::begin_series(const OpaqueJob& job) {
  const std::lock_guard lock(mutex_);
  std::erase_if(series_, [](const Series& series) { return series.open; });  // of a thread that did not get to its end
  while (oldest_ != next_ && look(place(oldest_)) && !series_.empty()) retire();
  series_.push_back({.job = job, .first = next_});
}

void SubgridQueue::end_series(bool whole) {
  const std::lock_guard lock(mutex_);
  if (series_.empty()) return;
  Series& series = series_.back();
  if (series.last == 0) return series_.pop_back();  // the driver refused the first one
  series.open = false;
  series.useful &= whole;
  if (series.last < oldest_) finish_series();
}

void SubgridQueue::collect(std::vector<TimedLaunch>& out) {
  const std::lock_guard lock(mutex_);
  // The thread that launches looks itself at those of a series that is open.
  while (!series_.empty() && !series_.front().open && oldest_ != next_ && look(place(oldest_))) retire();
  out.insert(out.end(), timed_.begin(), timed_.end());
  timed_.clear();
}

bool SubgridQueue::has_room(double target_ns) {
  const std::lock_guard lock(mutex_);
  double expected_ns = 0;
  for (std::size_t i = oldest_; i < next_; ++i) expected_ns += place(i).subgrid.expected_ns;
  return may_launch_subgrid(static_cast<std::uint32_t>(next_ - oldest_), expected_ns, target_ns);
}

bool SubgridQueue::complete(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  for (std::size_t i = oldest_; i < next_; ++i) {
    if (place(i).subgrid.number <= number && !look(place(i))) return false;
  }
  return true;
}

std::uint32_t SubgridQueue::sms() {
  const std::lock_guard lock(mutex_);
  std::uint32_t most = 0;  // they run one after the other
  for (std::size_t i = oldest_; i < next_; ++i) {
    if (!place(i).over) most = std::max(most, place(i).subgrid.sms);
  }
  return most;
}

std::shared_ptr<SubgridQueue> Subgrids::queue_of(CUstream stream) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<SubgridQueue>& queue = queues_[stream_key(stream)];
  if (!queue) queue = std::make_shared<SubgridQueue>();
  return queue;
}

void Subgrids::stream_destroyed(CUstream stream) {
  const std::lock_guard lock(mutex_);
  queues_.erase({stream, 0});
}

void Subgrids::collect(std::vector<TimedLaunch>& out) {
  const std::lock_guard lock(mutex_);
  for (const auto& [key, queue] : queues_) queue->collect(out);
}

bool Subgrids::complete(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  bool all = true;
  std::uint32_t sms = 0;
  for (const auto& [key, queue] : queues_) {
    all &= queue->complete(number);
    sms += queue->sms();
  }
  holding_.store(sms, std::memory_order_relaxed);
  return all;
}

}  // namespace gpuslice
