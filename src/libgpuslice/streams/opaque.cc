#include "libgpuslice/streams/opaque.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "ipc/stub.h"
#include "libgpuslice/base/capture.h"
#include "libgpuslice/base/clock.h"
#include "libgpuslice/base/debug.h"
#include "libgpuslice/base/driver.h"
#include "libgpuslice/base/relaxed_capture.h"
#include "libgpuslice/image/kernels.h"
#include "libgpuslice/image/whole_grid.h"
#include "libgpuslice/streams/joining.h"
#include "libgpuslice/streams/lane.h"
#include "libgpuslice/streams/own_streams.h"
#include "libgpuslice/streams/waiting_streams.h"

namespace gpuslice {

using namespace std::chrono_literals;

namespace {

/// Whether a stream may wait for the program. Who settles takes no longer than may_wait() allows, and others let it
/// pass.
bool a_stream_waits() {
  return !WaitingStreams::get().none();
}

/// Whether something that runs may wait for the program. Kernels wait for the host as they wait for other blocks.
bool may_wait() {
  return a_stream_waits() || Kernels::get().any_may_wait();
}

}  // namespace

Lane& Opaque::lane_of(CUstream stream) {
  std::lock_guard lock(mutex_);
  std::shared_ptr<Lane>& lane = lanes_[stream_key(stream)];
  if (!lane) lane = std::make_shared<Lane>(stream);
  return *lane;
}

OpaqueJob Opaque::Launch::job(std::uint64_t now_ns) const {
  return {.kernel = kernel ? hash_of(*kernel) : 0,
          .issued_ns = now_ns,
          .blocks = static_cast<std::uint32_t>(std::min<std::uint64_t>(blocks, UINT32_MAX)),
          .threads = threads,
          .shared = shared,
          .input_bytes = input_bytes};
}

bool Opaque::must_wait() const {
  return view_.granted() == 0 && !gpuctl::ipc::is_in_common(view_.mode());
}

void Opaque::wait_for_grant(Lane& lane, const Launch& launch) const {
  if (!must_wait()) return;
  lane.join_now();
  // A policy for jobs may come into force during the wait.
  if (lane.job.issued_ns == 0) lane.job = launch.job(lane.latest_ns);
  Owner::Waiting waiting{.job = lane.job};
  lane.before_gate = lane.blocks;
  owner_.at_gate(waiting);
  while (must_wait() && !owner_.ended()) {
    if (lane.before_gate.load() != 0 && lane.is_over()) lane.before_gate = 0;
    std::this_thread::sleep_for(50us);
  }
  lane.before_gate = 0;
  owner_.past_gate(waiting);
}

bool Opaque::reports_jobs() const {
  return view_.jobs() != gpuctl::ipc::kNoJobs;
}

/// The caller holds the lane's mutex. The demand is known before the wait, so that there will be a grant.
void Opaque::start_when_granted(Lane& lane, const Launch& launch) {
  lane.blocks = lane.busy.load(std::memory_order_relaxed) ? std::max(lane.blocks, launch.blocks) : launch.blocks;
  lane.latest = launch.name;
  lane.latest_ns = monotonic_ns();
  lane.job = reports_jobs() ? launch.job(lane.latest_ns) : OpaqueJob{};
  if (!lane.busy.exchange(true)) owner_.opaque_started(launch.blocks, lane.job);
  wait_for_grant(lane, launch);
}

Opaque::Turn::Turn(Opaque& opaque, CUstream stream, const Launch& launch)
    : stream_(stream), lane_(&opaque.lane_of(stream)) {
  goes_anywhere();
  join_others(*lane_);
  opaque.settling_.let_pass(a_stream_waits);
  lock_ = std::unique_lock(lane_->mutex);
  const bool tells = opaque.reports_jobs();
  if (lane_->launches % Lane::kMarkEvery == 0)
    lane_->wait_for_gpu(ahead_for(tells, opaque.view_.ahead_when_settled()), lock_);
  opaque.start_when_granted(*lane_, launch);
  confine(opaque, launch, opaque.place_now(launch));
  lane_->latest_sms = confined_.sms;
  note_suspect(launch, opaque.view_.sms());
  lane_->decided = launch.decided;
  if (!confined()) lane_->join_now();
  if (tells && launch.kernel) lane_->timer.begin(this->stream(), *launch.kernel, lane_->job);
}

/// A grid that its SMs certainly hold is stuck only if it waits for another launch, and that is known of PTX alone. One
/// that is larger than the GPU waits for no blocks that come later.
void Opaque::Turn::note_suspect(const Launch& launch, std::uint32_t sms_of_device) {
  constexpr std::uint64_t kMostBlocksOnSm = 32;
  if (!confined() || !launch.kernel || !blocks_may_wait(launch.kernel)) return;
  const bool waits = launch.kernel->blocks_wait.load() == gpuctl::ptx::BlocksWait::kYes;
  if (!waits && (launch.blocks <= confined_.sms || launch.blocks > kMostBlocksOnSm * sms_of_device)) return;
  lane_->suspect = suspect_ = hash_of(*launch.kernel);
}

/// Whether everything is complete that the program launched or that waits for it.
Settling::Seen Opaque::look_before(const Lane& own) {
  if (owner_.ended()) return {Settling::Device::kBroken};
  Settling::Seen seen{Settling::Device::kIdle};
  if (a_stream_waits()) seen.device = Settling::Device::kBusy;
  std::lock_guard lock(mutex_);
  for (const auto& [key, lane] : lanes_) {
    std::unique_lock<std::mutex> turn;
    const bool its_turn = lane.get() == &own || (turn = std::unique_lock(lane->mutex, std::try_to_lock)).owns_lock();
    if (its_turn) lane->look_at_marks();
    seen.progress += lane->marks_reached;
    if (seen.device == Settling::Device::kIdle && (!its_turn || !lane->is_over()))
      seen.device = Settling::Device::kBusy;
  }
  return seen;
}

Opaque::Settled::Settled(Opaque& opaque, const Lane& own) : opaque_(opaque) {
  begun_ = !capturing_anything() && opaque_.settling_.begin();
  if (!begun_) return;
  const Settling& settling = opaque_.settling_;
  std::optional<bool> waits;  // no launch begins meanwhile
  const auto may = [&] { return waits ? *waits : waits.emplace(may_wait()); };
  if (!settling.wait([&] { return opaque_.look_before(own); }, may)) return;
  if (settling.pauses() || may())
    quiesced_.emplace(QuiesceLaunches::kAllDevices, settling.limits());
  else
    quiesced_.emplace();
  // What was launched while nothing was in force is in no lane.
  const auto look = [&] {
    return Settling::Seen{work_runs(opaque_.view_.device_index()) ? Settling::Device::kBusy : Settling::Device::kIdle};
  };
  settled_ = quiesced_->quiet() && settling.wait(look, may);
}

Opaque::Settled::~Settled() {
  quiesced_.reset();
  if (begun_) opaque_.settling_.end(settled_);
}

/// Where the launch may run now. The caller holds the mutex of its lane.
Place Opaque::place_now(const Launch& launch) {
  Place place{.part = view_.part(), .there = {}};
  place.part.pairs = pair_choice_.pairs_for(place.part.common, launch.cluster);
  return place;
}

/// Finds a stream of the part that is granted, or makes it. The caller holds the lane's mutex.
void Opaque::find_or_make(Lane& lane, Place& place, std::uint32_t least) {
  const GreenContexts::Wanted wanted{place.part, least, lane.stream, &lane};
  place.there = green_.find(wanted, place.hold);
  if (!place.there.unmade) return;
  if (const Settled settled{*this, lane})
    place.there = green_.make(wanted, place.hold);
  else
    place.there = {.none = "something may wait for the program, so no green context can be made now"};
}

bool Opaque::confines(CUstream stream, const Launch& launch) {
  if (capturing_anything() || !may_use_own_streams(kQueuesToMove)) return false;
  Lane& lane = lane_of(stream);
  // Nearly each launch of a kernel that could have its other form asks. The launch itself looks again.
  if (lane.was_open_in(place_now(launch).part)) return true;
  settling_.let_pass(a_stream_waits);
  const std::lock_guard lock(lane.mutex);
  if (view_.granted() == 0) start_when_granted(lane, launch);
  Place place = place_now(launch);
  if (place.part.count == 0 || place.part.count >= view_.sms()) return false;
  if (lane.open() && lane.place().same_part(place)) return true;
  lane.join_now();
  const RelaxedCapture relaxed;
  find_or_make(lane, place, 0);
  return place.there.stream != nullptr;
}

std::optional<GrantView::Part> Opaque::part_of_graphs(CUstream stream, const Launch& launch) {
  if (reports_jobs() || view_.ahead_when_settled().count() == 0 || capturing_anything()) return std::nullopt;
  Lane& lane = lane_of(stream);
  settling_.let_pass(a_stream_waits);
  const std::lock_guard lock(lane.mutex);
  if (view_.granted() == 0) start_when_granted(lane, launch);
  const GrantView::Part part = place_now(launch).part;
  if (part.count == 0 || part.count >= view_.sms()) return std::nullopt;
  return part;
}

bool Opaque::use_part(CUstream stream, const GrantView::Part& part, std::uint32_t least,
                      const std::function<void(const GreenContexts::Confined&, const GreenContexts::Hold&)>& use) {
  if (!may_use_own_streams(kQueuesToMove)) return false;
  Lane& lane = lane_of(stream);
  settling_.let_pass(a_stream_waits);
  const std::lock_guard lock(lane.mutex);
  lane.join_now();
  const RelaxedCapture relaxed;
  const GreenContexts::Wanted wanted{part, least, lane.stream, &lane};
  GreenContexts::Hold hold;
  const GreenContexts::Confined found = green_.find(wanted, hold);
  const bool none = !found.stream && !found.unmade;  // nothing is worth waiting for
  std::optional<Settled> settled;
  if (!none && !settled.emplace(*this, lane)) return false;
  const GreenContexts::Confined there = found.unmade ? green_.make(wanted, hold) : found;
  use(there, hold);
  return true;
}

/// Confines the launch to the place of the launches before it if the part is the same, else to the part of `place`.
void Opaque::Turn::confine(Opaque& opaque, const Launch& launch, Place place) {
  if (place.part.count >= opaque.view_.sms()) confined_.none = "all are granted";
  if (!launch.confine || place.part.count == 0 || place.part.count >= opaque.view_.sms()) return;
  if (!may_use_own_streams(kQueuesToMove)) {
    confined_.none = "a stream of the program waits for a value, and might hold up the one for this launch";
    return;
  }
  const Place& before = lane_->place();
  if (lane_->open() && before.same_part(place) && before.there.sms >= launch.least) {
    in_flight_.reset();
    confined_ = before.there;
    return;
  }
  lane_->join_now();
  const RelaxedCapture relaxed;
  opaque.find_or_make(*lane_, place, launch.least);
  if (!place.there.stream) {
    confined_.none = place.there.none;
    return;
  }
  in_flight_.reset();
  if (lane_->enter(place)) {
    confined_ = place.there;
  } else {
    confined_.none = "the driver made no events";
    goes_anywhere();
  }
}

/// The launch is to go into the program's stream.
void Opaque::Turn::goes_anywhere() {
  in_flight_.emplace(stream_);
}

/// Ends the launch's stay where the driver refused it, before it goes elsewhere.
void Opaque::Turn::leave_at_once() {
  lane_->timer.give_up();
  if (confined()) {
    lane_->leave();
    lane_->join_now();
    goes_anywhere();
  }
  confined_ = {};
}

bool Opaque::Turn::move_to_groups(Opaque& opaque, const Launch& launch) {
  leave_at_once();
  Place place = opaque.place_now(launch);
  place.part.pairs = false;
  confine(opaque, launch, place);
  lane_->latest_sms = confined_.sms;
  return confined();
}

CUstream Opaque::Turn::anywhere(const char* why) {
  leave_at_once();
  confined_ = {.none = why};
  lane_->latest_sms = 0;
  return stream_;
}

Opaque::Turn::~Turn() {
  lane_->timer.end(stream(), confined_.sms);
  if (confined()) lane_->leave();
  if (stream_ == CU_STREAM_PER_THREAD && lane_->join) driver().cuEventRecord(lane_->join, stream_);  // for demand()
  if (++lane_->launches % Lane::kMarkEvery == 0) lane_->set_mark();
}

// A stream counts as empty only if it was found empty twice, with no launch in between. Beginning again costs a launch
// more than going on, and a program that is hardly ahead of the GPU would begin again all the time.
std::uint32_t Opaque::demand(Look* look) {
  std::uint64_t blocks = 0, running = 0;
  std::lock_guard lock(mutex_);
  for (const auto& [key, lane] : lanes_) {
    if (!lane->busy.load(std::memory_order_acquire)) continue;
    std::unique_lock turn(lane->mutex, std::try_to_lock);
    if (!turn.owns_lock()) {  // a launch is under way
      ++blocks;
      running += lane->before_gate.load();
      continue;
    }
    const bool is_over = lane->is_over();
    if (look) lane->timer.collect(look->timed);
    if (is_over && std::exchange(lane->launches_when_empty, lane->launches) == lane->launches) {
      lane->busy.store(false, std::memory_order_release);
      lane->suspect = 0;
      if (lane->stuck != 0) Kernels::get().note_ended(std::exchange(lane->stuck, 0));
      continue;
    }
    blocks += lane->blocks;
    if (!is_over) running += lane->blocks;
    if (look) consider(*lane, *look);
  }
  const auto sms = [this](std::uint64_t all) {
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(all, view_.sms()));
  };
  if (look) look->running = sms(running);
  return sms(blocks);
}

bool Opaque::idle() {
  // The agent has it now and then, for some microseconds; or for long, in a call that does not return.
  std::unique_lock lock(mutex_, std::try_to_lock);
  for (int tries = 0; !lock.owns_lock() && tries < 100; ++tries) {
    std::this_thread::yield();
    lock.try_lock();
  }
  return lock.owns_lock() && std::ranges::all_of(lanes_, [](const auto& entry) {
           const Lane& lane = *entry.second;
           if (!lane.busy.load(std::memory_order_acquire)) return true;
           std::unique_lock turn(entry.second->mutex, std::try_to_lock);
           return turn.owns_lock() && lane.is_over();
         });
}

/// The caller holds the lane's mutex.
void Opaque::consider(const Lane& lane, Look& look) const {
  look.any = true;
  const OpaqueJob* timed = lane.timer.oldest();
  const OpaqueJob& job = timed ? *timed : lane.job;
  if (job.issued_ns != 0 && (look.oldest.issued_ns == 0 || job.issued_ns < look.oldest.issued_ns)) look.oldest = job;
}

void Opaque::report_slow() {
  constexpr std::uint64_t kSlowNs = 1'000'000'000;
  std::lock_guard lock(mutex_);
  const std::uint64_t now = monotonic_ns();
  for (const auto& [key, lane] : lanes_) {
    if (!lane->busy.load() || now - lane->latest_ns < kSlowNs) continue;
    debug(
        "%s, in its original form, %llu ms ago was the latest in a stream that does not end; on %u SMs (0: any), "
        "granted %u",
        lane->latest.load(), static_cast<unsigned long long>((now - lane->latest_ns) / 1'000'000),
        lane->latest_sms.load(), view_.granted());
  }
}

std::vector<Opaque::Stuck> Opaque::stuck() {
  // Much more than the program may be ahead of the GPU (in_flight_limit.h).
  constexpr std::uint64_t kStuckNs = 5'000'000'000;
  std::vector<Stuck> found;
  if (WaitingStreams::get().any_for_a_value()) return found;
  std::lock_guard lock(mutex_);
  const std::uint64_t now = monotonic_ns();
  for (const auto& [key, lane] : lanes_) {
    const std::uint64_t kernel = lane->suspect, at = lane->latest_ns;
    if (!lane->busy.load() || kernel == 0 || now < at + kStuckNs) continue;
    // A launch that waits for its turn holds the lane.
    const std::unique_lock turn(lane->mutex, std::try_to_lock);
    if (!turn.owns_lock()) continue;
    lane->suspect = 0;
    if (lane->confined_is_over()) continue;
    lane->stuck = kernel;
    found.push_back({kernel, lane->latest_sms, (now - at) / 1'000'000});
  }
  return found;
}

void Opaque::stream_destroyed(CUstream stream) {
  std::shared_ptr<Lane> lane;
  {
    std::lock_guard lock(mutex_);
    const auto found = lanes_.find({stream, 0});
    if (found == lanes_.end()) return;
    lane = std::move(found->second);
    lanes_.erase(found);
  }
  // Not under the mutex, which the agent takes: another thread may be making a green context, which waits until
  // launches are complete.
  green_.forget(lane.get());
}

}  // namespace gpuslice
