#include "libgpuslice/agent/agent.h"

#include <sys/prctl.h>

#include <exception>
#include <memory>
#include <thread>
#include <vector>

#include "libgpuslice/agent/contexts.h"
#include "libgpuslice/agent/worker_counts.h"
#include "libgpuslice/base/clock.h"
#include "libgpuslice/base/debug.h"
#include "libgpuslice/base/driver.h"
#include "libgpuslice/base/driver_errors.h"
#include "libgpuslice/base/own_threads.h"
#include "libgpuslice/base/relaxed_capture.h"
#include "libgpuslice/base/stage.h"
#include "libgpuslice/client/client.h"
#include "libgpuslice/image/kernels.h"
#include "libgpuslice/launch/job_report.h"

namespace gpuslice {

namespace ipc = gpuctl::ipc;
using gpuctl::ptx::HostSlot;

namespace {

/// A query costs 1 us. The program's own calls see the error at once anyway.
constexpr std::uint64_t kFaultEveryNs = 5'000'000;
constexpr std::uint64_t kReportEveryNs = 1'000'000'000, kSlowNs = 1'000'000'000;
/// How late the system may end a nap of this thread; the default is 50 us.
constexpr unsigned long kTimerSlackNs = 1'000;

}  // namespace

bool Agent::start(ContextState& context) {
  auto agent = std::unique_ptr<Agent>(new Agent(context));
  if (!agent->prepare()) return false;
  const auto body = [](void* started) -> void* {
    const std::unique_ptr<Agent> own(static_cast<Agent*>(started));
    own->run();
    return nullptr;
  };
  if (!start_own_thread(body, agent.get())) {
    debug("no thread for an agent");
    return false;
  }
  static_cast<void>(agent.release());  // it lives as long as its thread
  return true;
}

bool Agent::prepare() {
  const Stage stage("preparing the agent");
  if (!driver().cuMemcpyHtoDAsync_v2) return false;
  int least = 0, greatest = 0;
  if (driver().cuCtxGetStreamPriorityRange(&least, &greatest) != CUDA_SUCCESS) return false;
  {
    const Stage making("making the agent's streams");
    if (driver().cuStreamCreateWithPriority(&housekeeping_, CU_STREAM_NON_BLOCKING, greatest) != CUDA_SUCCESS)
      return false;
    if (!top_ups_.make_streams(greatest)) return false;
  }
  const Stage mapping("mapping the grant into the GPU");
  adopt_stub_page();
  return true;
}

void Agent::adopt_stub_page() {
  const std::uint32_t epoch = page_.adopt();
  evictions_.start_from(epoch);
  time_slice_.tell_again();
}

void Agent::run() {
  this_is_an_own_thread();
  if (const CUresult result = driver().cuCtxSetCurrent(context_.handle); result != CUDA_SUCCESS) {
    debug("the agent cannot work in its context: %d; nothing is managed there", result);
    context_.end();
  }
  prctl(PR_SET_TIMERSLACK, kTimerSlackNs);
  relax_captures();
  const std::uint64_t now = monotonic_ns();
  naps_.note_work(now);
  completions_.start(now);
  const bool served = serve();
  if (Contexts::exiting()) finish_at_exit();
  const CUresult fault = context_.agent.fault();
  if (fault != CUDA_SUCCESS || !served) {
    // If the driver said so of one call only, launches are still there, and nobody grants them anything any more.
    std::lock_guard lock(context_.book.mutex());
    context_.book.let_holders_work();
  }
  const int device = context_.view.device_index();
  if (Contexts::exiting()) report_at_exit();
  context_.agent.set_over();
  if (fault != CUDA_SUCCESS) Client::get().report_fault(device, fault, error_name(fault));
}

/// Tells the daemon what it could not know yet of a short program. The exiting thread waits for the agent, and no
/// longer than Contexts::end_all_at_exit() allows.
void Agent::report_at_exit() {
  try {
    if (context_.view.jobs() == ipc::kNoJobs) return;
    Opaque::Look look;
    if (context_.opaque_work.busy()) context_.opaque.demand(&look);
    for (const TimedLaunch& launch : look.timed) record(context_.view, launch);
    Client::get().report_last_kernels();
  } catch (const std::exception& error) {
    debug("nothing is reported at the exit: %s", error.what());
  }
}

/// Looks until nothing is managed here any more. Returns false if it gave up, for want of memory.
bool Agent::serve() {
  try {
    while (context_.agent.wait_while_held()) look();
    return true;
  } catch (const std::exception& error) {
    debug("the agent gives up: %s; nothing is managed in its context any more", error.what());
    context_.end();
    return false;
  }
}

void Agent::look() {
  if (Contexts::execs()) return rest_at_exec();
  const auto in_driver = [this](const auto& step) {
    const DriverCalls::Inside call(context_.agent.driver_calls());
    step();
  };
  const std::uint32_t wake_ups_seen = context_.agent.wake_ups();
  if (!page_.current()) in_driver([&] { adopt_stub_page(); });
  const std::uint32_t epoch_seen = page_.epoch();
  page_.copy_grant();
  std::vector<TopUps::Order> orders;
  {
    std::lock_guard lock(context_.book.mutex());
    const std::uint64_t now = monotonic_ns();
    if (completions_.look(top_ups_.none_runs(), now)) naps_.note_work(now);
    evictions_.look(epoch_seen);
    top_ups_.tell_if_sent();
    orders = top_ups_.plan();
    naps_.look_for_ends();
  }
  in_driver([&] { evictions_.look_for_remaining(housekeeping_); });
  in_driver([&] {
    if (!evictions_.evicting()) returns_.count_workers(housekeeping_);
  });
  in_driver([&] { look_at_opaque(epoch_seen); });
  in_driver([&] { time_slice_.look(context_.view.device_index()); });
  in_driver([&] { look_for_fault(); });
  if (context_.agent.ended()) return;
  for (const TopUps::Order& order : orders) in_driver([&] { top_ups_.send(order); });
  in_driver([&] { keep_slots(); });
  report_slow();
  naps_.sleep(wake_ups_seen, epoch_seen, evictions_.evicting() || top_ups_.wanted());
}

/// Asks the driver for an error of the context while something runs there. After an error, threads that wait for
/// launches stop waiting.
void Agent::look_for_fault() {
  const std::uint64_t now = monotonic_ns();
  if (!naps_.work_lately(now) || now - last_.fault_ns < kFaultEveryNs) return;
  last_.fault_ns = now;
  context_.note_result(driver().cuStreamQuery(housekeeping_));
}

/// The process is about to become another program. If that fails, its grant is in another page, since the daemon has
/// opened those of the old one.
void Agent::rest_at_exec() {
  finish_at_exit();
  report_at_exit();
  context_.agent.rest_while([] { return Contexts::execs() && !Contexts::exiting(); },
                            [this] {
                              if (!page_.current()) adopt_stub_page();
                            });
}

/// Runs when the process exits; the exiting thread waits for it. From then on, the GPU's work continues without an
/// agent. Evicted launches get all the workers that fit, which nothing evicts any more, and resting holders are told to
/// work.
void Agent::finish_at_exit() {
  ipc::store(context_.book.slots().polled().capsm, ipc::kUnlimited);
  std::vector<TopUps::Order> orders;
  {
    // the exiting thread may have been interrupted while it held this mutex
    std::unique_lock lock(context_.book.mutex(), std::defer_lock);
    while (!lock.try_lock()) {
      if (own_calls_are_over()) return;
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    context_.book.let_holders_work();
    orders = top_ups_.plan_for_exit();
  }
  for (const TopUps::Order& order : orders) top_ups_.send(order);
  // Workers read memory of this process even if they find nothing left to do, and that memory goes with the process.
  // Under MPS such a read would be a fault for all programs on the GPU.
  while (!own_calls_are_over() && !all_left()) std::this_thread::sleep_for(std::chrono::microseconds(50));
}

/// Whether no worker is on the GPU or on its way there, nor, before exec, a kernel in original form.
bool Agent::all_left() {
  if (Contexts::execs() && context_.view.mode() != ipc::Mode::turns && context_.opaque.demand() > 0) return false;
  std::unique_lock lock(context_.book.mutex(), std::try_to_lock);
  if (!lock.owns_lock()) return false;
  completions_.look(top_ups_.none_runs(), monotonic_ns());
  top_ups_.look_for_grids(true);
  return context_.book.outstanding() == 0 && (!context_.book.any_leaving() || top_ups_.none_runs());
}

/// Finds out how many SMs the kernels in original form on the GPU could fill.
void Agent::look_at_opaque(std::uint32_t epoch_seen) {
  OpaqueWork& work = context_.opaque_work;
  if (!work.busy()) return;
  const bool others_wait = context_.view.jobs() == ipc::kReportEachJob;
  const std::uint64_t now = monotonic_ns();
  if (const std::uint64_t left = opaque_pace_.left_ns(now, epoch_seen); left > 0) {
    if (others_wait) naps_.not_longer_than(left);
    return;
  }
  naps_.note_work(now);
  work.begin_look();
  Opaque::Look look;
  const std::uint32_t demand = context_.opaque.demand(&look);
  work.end_look(demand);
  opaque_pace_.looked(now, {epoch_seen, demand, look.running, look.oldest.issued_ns}, others_wait);
  if (others_wait && work.busy()) naps_.not_longer_than(opaque_pace_.left_ns(now, epoch_seen));
  for (const TimedLaunch& launch : look.timed) record(context_.view, launch);
  std::lock_guard lock(context_.book.mutex());
  if (work.note(demand, look)) context_.usage.publish();
}

void Agent::keep_slots() {
  Slots& slots = context_.book.slots();
  std::vector<std::uint32_t> dirty;
  bool waits = false;
  {
    std::lock_guard lock(context_.book.mutex());
    waits = context_.book.any_leaving();
    slots.age(monotonic_ns());
    if (slots.wants_zeroing()) dirty = slots.take_dirty();
  }
  if (!dirty.empty()) {
    zeroing_ = slots.zero(dirty, housekeeping_) == CUDA_SUCCESS;
    if (!zeroing_) {
      debug("zeroing launch blocks failed: nothing is managed in this context any more");
      context_.end();
    }
  }
  top_ups_.look_for_grids(waits);
  if (!zeroing_ || driver().cuStreamQuery(housekeeping_) != CUDA_SUCCESS) return;
  zeroing_ = false;
  std::lock_guard lock(context_.book.mutex());
  slots.zeroed();
  context_.agent.notify_change();
}

// For a user who looks for a launch that does not end: once a second, writes what is known of each stream's oldest
// launch to the debug file, and tells the daemon of kernels in confinement that may be stuck.
void Agent::report_slow() {
  const std::uint64_t now = monotonic_ns();
  if (now - last_.report_ns < kReportEveryNs) return;
  last_.report_ns = now;
  if (debugging()) context_.opaque.report_slow();
  for (const Opaque::Stuck& stuck : context_.opaque.stuck()) {
    const std::string name = Kernels::get().note_stuck(stuck.kernel);
    debug("%s is stuck on %u SMs, launched %llu ms ago", name.c_str(), stuck.sms,
          static_cast<unsigned long long>(stuck.ms));
    if (!name.empty()) Client::get().report_stuck({.kernel = name, .sms = stuck.sms, .ms = stuck.ms});
  }
  std::lock_guard lock(context_.book.mutex());
  for (const Stream* stream : context_.book.active()) {
    const Launch& head = *stream->outstanding.front();
    if (now - head.issued_ns < kSlowNs) continue;
    const HostSlot& host = context_.book.host(head);
    debug(
        "%s waits for %llu ms: total %u, claimed %u, chunk %u, workers %u of %u left, %u entered later, started %u, "
        "done %u, issued %d, "
        "granted %u, allowed %u, %zu behind it",
        head.instance->kernel->name.c_str(), static_cast<unsigned long long>((now - head.issued_ns) / 1'000'000),
        head.args.total, ipc::load(host.progress), head.chunk, ipc::load(host.left), head.launched,
        ipc::load(host.entered), ipc::load(host.started), ipc::load(host.done), head.issued.load(),
        context_.view.granted(), gpuctl::range_size(context_.limits.allowed(*stream)), stream->outstanding.size() - 1);
  }
}

}  // namespace gpuslice
