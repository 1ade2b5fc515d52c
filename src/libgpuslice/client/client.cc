#include "libgpuslice/client/client.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <exception>
#include <limits>
#include <memory>
#include <string_view>
#include <thread>
#include <utility>

#include "ipc/codec.h"
#include "ipc/fields.h"
#include "libgpuslice/client/held_memory.h"
#include "libgpuslice/client/reconnect.h"
#include "libgpuslice/client/spare_descriptors.h"
#include "libgpuslice/client/told_sms.h"
#include "libgpuslice/memory/memory_reserve.h"
#include "libgpuslice/process/clock.h"
#include "libgpuslice/process/debug.h"
#include "libgpuslice/process/environment.h"
#include "libgpuslice/process/own_threads.h"
#include "libgpuslice/process/stage.h"

namespace gpuslice {

using gpuctl::fail;
using gpuctl::Result;
namespace ipc = gpuctl::ipc;

namespace {

constexpr std::chrono::milliseconds kReportInterval{200};
/// The first attachment holds up the program's start, so it waits less long than a request of an administrator.
constexpr std::chrono::milliseconds kAttachTimeout{2000};
/// More than any administrator means; in ns it fits all that is counted with it.
constexpr std::int64_t kLongestTargetUs = 3'600'000'000;
constexpr char kDefaultSocket[] = "/run/gpuctld/io.gpuctl";

Reconnect::Socket socket_file(const std::string& path) {
  struct stat about {};
  if (stat(path.c_str(), &about) != 0) return {};
  return {.device = about.st_dev,
          .inode = about.st_ino,
          .changed_ns = std::int64_t{about.st_ctim.tv_sec} * 1'000'000'000 + about.st_ctim.tv_nsec};
}

/// What OtherVersion says.
std::string about_versions(const boost::json::object& parameters) {
  ipc::Fields fields(parameters);
  const std::int64_t theirs = fields.integer("daemon");
  return "this library has stub page version " + std::to_string(ipc::stub_version()) + ", gpuctld has " +
         std::to_string(theirs) + ": no limits are kept";
}

/// Whether the daemon refuses the field, which it may not know.
bool refuses(const ipc::Reply& reply, std::string_view name) {
  const boost::json::value* field = reply.parameters.if_contains("field");
  return reply.error == "io.gpuctl.InvalidValue" && field != nullptr && field->is_string() &&
         field->get_string().starts_with(name);
}

ipc::Call hold_memory(int device, std::uint64_t bytes) {
  const auto amount =
      static_cast<std::int64_t>(std::min<std::uint64_t>(bytes, std::numeric_limits<std::int64_t>::max()));
  return {.method = "io.gpuctl.HoldMemory", .parameters = {{"device", device}, {"bytes", amount}}};
}

}  // namespace

Client& Client::get() {
  static Client* client = new Client;
  return *client;
}

Client::Client() {
  if (const char* socket = environment("GPUCTL_SOCKET")) socket_ = socket;
  if (const char* slice = environment("GPUCTL_SLICE")) slice_ = slice;
  wanted_ = !socket_.empty() || !slice_.empty();
  if (socket_.empty()) socket_ = kDefaultSocket;
}

Result<void> Client::connect_locked(bool resumed, bool* refused) {
  if (left_) return fail("the program ends");
  if (!descriptors_are_left()) return fail("too few file descriptors are left for a connection to gpuctld");
  boost::json::array uuids;
  for (const std::string& uuid : uuids_) uuids.emplace_back(uuid);
  ipc::Call call{.method = "io.gpuctl.Attach",
                 .parameters = {{"slice", slice_},
                                {"device_uuids", std::move(uuids)},
                                {"resumed", resumed},
                                {"stub_version", ipc::stub_version()}}};
  if (!mps_sms_.empty()) call.parameters["mps_sms"] = boost::json::array(mps_sms_.begin(), mps_sms_.end());
  if (queues_ != 0) call.parameters["queues"] = queues_;
  const auto began = std::chrono::steady_clock::now();
  std::optional<ipc::Connection> opened = take_asked_locked();
  Result<ipc::Reply> reply = opened ? opened->call(call, kAttachTimeout) : fail("not asked");
  // Not asked, or that daemon has ended since.
  if (!reply && std::chrono::steady_clock::now() - began < kAttachTimeout) {
    Result<ipc::Connection> anew = ipc::Connection::open(socket_, kAttachTimeout);
    if (!anew) return anew.error();
    opened = std::move(*anew);
    reply = opened->call(call, kAttachTimeout);
  }
  if (!reply) return reply.error();
  // A daemon that looks for its GPUs will answer otherwise.
  if (refused) *refused = reply->error != "io.gpuctl.NoGpu";
  // An older daemon than at the start; the next try goes without.
  if (refuses(*reply, "mps_sms")) mps_sms_.clear();
  if (refuses(*reply, "queues")) queues_ = 0;
  if (reply->error == "io.gpuctl.OtherVersion") return fail(about_versions(reply->parameters));
  if (!reply->error.empty()) return fail("gpuctld: " + reply->error + ": slice '" + slice_ + "'");
  std::vector<ipc::UniqueFd> fds = opened->take_fds();
  if (fds.size() != 2) return fail("gpuctld: Attach: expected 2 file descriptors");
  Result<ipc::StubMap> map = ipc::StubMap::map(fds[0].get());
  if (!map) return map.error();

  ipc::Fields fields(reply->parameters);
  std::string attached_to = fields.text("slice");  // the daemon's answer: if no slice was asked for, it is the root
  const Targets targets{
      .latency = std::chrono::microseconds(fields.integer("latency_target_us", 0, kLongestTargetUs)),
      .block_task = std::chrono::microseconds(fields.integer("block_target_us", 0, kLongestTargetUs))};
  if (!fields.ok()) return fields.error();
  const int flags = fcntl(fds[1].get(), F_GETFL);
  if (flags < 0 || !(flags & O_NONBLOCK)) return fail("gpuctld: Attach: a wake-up could block the program");
  targets_ = targets;
  slice_ = std::move(attached_to);
  connection_ = std::make_unique<ipc::Connection>(std::move(*opened));
  stubs_.push_back(std::move(*map));
  ipc::store(stubs_.back()->beat, 1u);
  stub_.store(stubs_.back().get(), std::memory_order_release);
  ToldSms::get().publish(*stubs_.back().get());
  if (left_) ipc::store(stubs_.back()->leaving, 1u);
  // The descriptor keeps its number, because another thread may be about to write to it.
  const int kick_fd = kick_fd_.load();
  if (kick_fd < 0 || dup3(fds[1].get(), kick_fd, O_CLOEXEC) < 0) kick_fd_.store(fds[1].release());
  said_.clear();
  debug("attached to slice %s", slice_.c_str());
  return {};
}

Client::MpsStart Client::ask_for_mps(unsigned own_queues) {
  std::lock_guard lock(mutex_);
  if (started_ || !descriptors_are_left()) return {};
  const auto until = std::chrono::steady_clock::now() + kLongestAnswer;
  const auto left = [until] {
    const auto time = std::chrono::floor<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    return std::max(time, std::chrono::milliseconds(0));
  };
  Result<ipc::Connection> opened = ipc::Connection::open(socket_, kLongestAnswer / 2);
  if (!opened) return {};
  ipc::Call call{.method = "io.gpuctl.GetMpsPercentage", .parameters = {{"slice", slice_}, {"queues", own_queues}}};
  Result<ipc::Reply> reply = opened->call(call, left());
  if (reply && refuses(*reply, "queues")) {  // an older daemon
    call.parameters.erase("queues");
    reply = opened->call(call, left());
  }
  if (!reply || !reply->error.empty()) return {};
  ipc::Fields fields(reply->parameters);
  const auto hundredths = fields.maybe_integer("hundredths", 1, 10000), queues = fields.maybe_integer("queues", 1, 32);
  if (!fields.ok()) return {};
  const MpsStart start{.hundredths = hundredths, .queues = queues};
  if (!queues) return start;
  queues_ = *start.queues;
  opened->take_fds();
  asked_.emplace(std::move(*opened), getpid());
  return start;
}

/// Null where none was asked, or in a child that was forked meanwhile: the connection is its parent's.
std::optional<ipc::Connection> Client::take_asked_locked() {
  std::optional<Asked> asked = std::exchange(asked_, std::nullopt);
  if (!asked || asked->pid != getpid()) return std::nullopt;
  return std::move(asked->connection);
}

void Client::keep_no_promise() {
  std::lock_guard lock(mutex_);
  const std::optional<ipc::Connection> asked = take_asked_locked();
  if (asked) ::shutdown(asked->fd(), SHUT_RDWR);  // a child that was forked meanwhile has the descriptor too
}

void Client::start(std::vector<std::string> device_uuids, std::vector<int> mps_sms) {
  {
    std::lock_guard lock(mutex_);
    if (started_ || !wanted()) return;
    uuids_ = std::move(device_uuids);
    mps_sms_ = std::move(mps_sms);
    const auto body = [](void* client) -> void* {
      static_cast<Client*>(client)->run();
      return nullptr;
    };
    // The thread comes first: a process without one cannot keep a connection, and the daemon need not hear of it.
    const char* missing = !descriptors_are_left() ? "descriptor" : !start_own_thread(body, this) ? "thread" : nullptr;
    if (missing) {
      debug("no %s for the connection to gpuctld: this program is in no slice", missing);
      return give_up();
    }
    started_ = true;
    const Stage stage("attaching");
    if (Result<void> attached = connect_locked(false); !attached) say(attached.error());
  }
  HeldMemory::get().publish();
}

Result<void> Client::attach(const std::string& slice) {
  std::unique_lock lock(mutex_);
  std::string previous = std::exchange(slice_, slice);
  wanted_ = true;
  if (!started_) return {};
  connection_.reset();
  Result<void> attached = connect_locked(stub() != nullptr);
  if (!attached) slice_ = previous;
  lock.unlock();
  HeldMemory::get().publish();
  return attached;
}

std::string Client::slice() const {
  std::lock_guard lock(mutex_);
  return slice_;
}

Targets Client::targets() const {
  std::lock_guard lock(mutex_);
  return targets_;
}

std::chrono::microseconds Client::subgrid_time() const {
  const ipc::Stub* page = stub();
  return std::chrono::microseconds(page ? std::min(ipc::load(page->subgrid_us), ipc::kLongestSubgridUs) : 0);
}

const ipc::Grant* Client::grant(int device) const {
  const ipc::Stub* page = stub();
  return page && device >= 0 && device < static_cast<int>(ipc::kMaxDevices) ? &page->grant[device] : nullptr;
}

void Client::kick() const {
  int fd = kick_fd_.load(std::memory_order_relaxed);
  if (fd < 0) return;
  const std::uint64_t one = 1;
  [[maybe_unused]] ssize_t written = write(fd, &one, sizeof one);
}

Result<void> Client::set_hint(int priority) {
  std::lock_guard lock(mutex_);
  if (!connection_) return fail("not attached to a slice");
  Result<ipc::Reply> reply =
      connection_->call({.method = "io.gpuctl.SetHint", .parameters = {{"priority", priority}}}, kAttachTimeout);
  if (!reply) {
    connection_.reset();  // a late answer may still come, and must not be taken for the next one
    return reply.error();
  }
  if (!reply->error.empty()) return fail("gpuctld: " + reply->error);
  return {};
}

Result<Client::MemoryAnswer> Client::ask_memory(int device, std::uint64_t bytes) {
  std::lock_guard lock(mutex_);
  if (!connection_) return fail("not attached to a slice");
  Result<ipc::Reply> reply = connection_->call(hold_memory(device, bytes), kAttachTimeout);
  if (!reply) {
    connection_.reset();
    return reply.error();
  }
  if (!reply->error.empty()) return fail("gpuctld: " + reply->error);
  ipc::Fields fields(reply->parameters);
  MemoryAnswer answer{.granted = fields.boolean("granted"), .total = {}, .free = {}};
  if (const auto total = fields.maybe_integer("total", 0)) answer.total = static_cast<std::uint64_t>(*total);
  if (const auto free = fields.maybe_integer("free", 0)) answer.free = static_cast<std::uint64_t>(*free);
  if (!fields.ok()) return fields.error();
  return answer;
}

void Client::tell_memory(int device, std::uint64_t bytes) {
  std::lock_guard lock(mutex_);
  if (!connection_) return;
  ipc::Call call = hold_memory(device, bytes);
  call.oneway = true;
  if (!connection_->send(call)) connection_.reset();
}

void Client::report_fault(int device, int error, const std::string& name) {
  std::lock_guard lock(mutex_);
  if (!connection_) return;
  const ipc::Call call{.method = "io.gpuctl.ReportFault",
                       .parameters = {{"device", device}, {"error", error}, {"name", ipc::to_utf8(name)}},
                       .oneway = true};
  if (!connection_->send(call)) connection_.reset();
}

/// With reporting_. Empty: there is nothing to report.
std::optional<ipc::Call> Client::kernels_to_report(bool all) {
  KernelSource source = kernel_source_.load();
  if (!source || memory_ran_out()) return std::nullopt;
  const std::vector<ipc::Kernel> kernels = source(all);
  if (kernels.empty()) return std::nullopt;
  return ipc::Call{.method = "io.gpuctl.ReportKernels", .parameters = {{"kernels", ipc::to_json(kernels)}}};
}

void Client::report_kernels(bool all) {
  std::lock_guard reporting(reporting_);
  std::optional<ipc::Call> call = kernels_to_report(all);
  std::lock_guard lock(mutex_);
  if (!call || !connection_) return;
  call->oneway = true;
  if (!connection_->send(*call)) connection_.reset();
}

void Client::report_last_kernels() {
  std::lock_guard reporting(reporting_);
  const std::optional<ipc::Call> call = kernels_to_report(false);
  std::lock_guard lock(mutex_);
  if (call && connection_ && !connection_->call(*call, kLongestLastReport)) connection_.reset();
}

void Client::leave() {
  left_ = true;
  if (ipc::Stub* page = stub()) ipc::store(page->leaving, 1u);
  // The thread that leaves may have been interrupted by a signal while it held this mutex. Then the connection ends
  // with the process.
  std::unique_lock lock(mutex_, std::try_to_lock);
  if (lock.owns_lock() && connection_) ::shutdown(connection_->fd(), SHUT_RDWR);
}

/// What the thread knows from one look to the next.
struct Client::Watch {
  Reconnect reconnect{monotonic_ns() ^ static_cast<std::uint64_t>(getpid()) << 32};
  bool attached = true;
  std::chrono::steady_clock::time_point reported = std::chrono::steady_clock::now();
};

// Waits for the end of the connection, reports kernels meanwhile, and attaches again when the daemon is back.
void Client::run() {
  Watch watch;
  while (!left_) {
    try {
      look(watch);
    } catch (const std::exception& error) {  // out of memory, perhaps not for ever
      debug("the thread of the connection: %s", error.what());
      std::this_thread::sleep_for(kReportInterval);
    }
  }
}

/// Returns whether there is a connection, after it lasted for `at_most` or ended.
bool Client::wait_for_end(std::chrono::milliseconds at_most) {
  int fd = -1;
  {
    std::lock_guard lock(mutex_);
    if (connection_) fd = connection_->fd();
  }
  if (fd < 0) return false;
  pollfd waiting{fd, POLLRDHUP, 0};
  poll(&waiting, 1, static_cast<int>(at_most.count()));
  std::lock_guard lock(mutex_);
  if (connection_ && connection_->fd() == fd && (waiting.revents & (POLLRDHUP | POLLHUP | POLLERR | POLLNVAL))) {
    debug("gpuctld went away; keeping the last grant");
    connection_.reset();
  }
  return connection_ != nullptr;
}

/// What does not change is said once, however long it lasts. With mutex_.
void Client::say(const gpuctl::Error& why) {
  if (std::exchange(said_, why.message) != said_) debug("%s", said_.c_str());
}

void Client::look(Watch& watch) {
  if (ipc::Stub* page = stub()) __atomic_fetch_add(&page->beat, 1, __ATOMIC_RELAXED);
  const Tick tick = tick_.load();
  const std::chrono::milliseconds pause = tick ? tick() : kReportInterval;
  const bool was_attached = std::exchange(watch.attached, wait_for_end(pause));
  const auto now = std::chrono::steady_clock::now();
  if (watch.attached) {
    if (now - watch.reported < kReportInterval) return;
    watch.reported = now;
    return report_kernels(false);
  }
  const Reconnect::Socket socket = socket_file(socket_);
  const auto why = [this](bool refused) {
    return refused ? Reconnect::Why::refused : stub() ? Reconnect::Why::no_daemon_for_held : Reconnect::Why::no_daemon;
  };
  if (was_attached) return watch.reconnect.failed(now, socket, why(false));
  std::this_thread::sleep_for(kReportInterval);
  if (!watch.reconnect.due(now, socket)) return;
  bool refused = false;
  Result<void> attached;
  {
    std::lock_guard lock(mutex_);
    attached = connect_locked(stub() != nullptr, &refused);
    if (!attached) say(attached.error());
  }
  if (!attached) {
    return watch.reconnect.failed(std::chrono::steady_clock::now(), socket, why(refused));
  }
  watch.reconnect.attached();
  watch.attached = true;
  HeldMemory::get().publish();
  report_kernels(true);
}

void Client::forget_after_fork() {
  // The parent's threads do not exist here and may have held the mutex, so a new object replaces this one.
  new (this) Client;
}

}  // namespace gpuslice
