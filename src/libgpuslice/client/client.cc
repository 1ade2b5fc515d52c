#include "libgpuslice/client/client.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <string_view>
#include <thread>
#include <utility>

#include "base/in_container.h"
#include "ipc/codec.h"
#include "ipc/fields.h"
#include "libgpuslice/base/debug.h"
#include "libgpuslice/base/environment.h"
#include "libgpuslice/base/memory_reserve.h"
#include "libgpuslice/base/own_threads.h"
#include "libgpuslice/base/stage.h"
#include "libgpuslice/base/tick_clock.h"
#include "libgpuslice/client/held_memory.h"
#include "libgpuslice/client/spare_descriptors.h"
#include "libgpuslice/client/told_sms.h"

namespace gpuslice {

using gpuctl::fail;
using gpuctl::Result;
namespace ipc = gpuctl::ipc;

namespace {

/// The first attachment holds up the program's start, so it waits less long than a request of an administrator.
constexpr std::chrono::milliseconds kAttachTimeout{2000};
constexpr std::chrono::microseconds kShortPause{100};
constexpr char kDefaultSocket[] = "/run/gpuctld/io.gpuctl";
constexpr char kNoSlice[] = "io.gpuctl.NoSlice";

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
  const char* slice = environment("GPUCTL_SLICE");
  introduction_.slice = slice != nullptr ? slice : gpuctl::container_slice();
  wanted_ = !socket_.empty() || !introduction_.slice.empty();
  if (socket_.empty()) socket_ = kDefaultSocket;
  if (wanted_) introduce();
}

void Client::introduce() {
  introduction_.command = own_command_line();
  introduction_.exe = own_exe();
}

Result<void> Client::connect_locked(bool resumed, bool* refused) {
  const bool first = !std::exchange(tried_, true);
  if (stay_ != Stay::kHere) return fail("the program ends");
  if (!descriptors_are_left()) return fail("too few file descriptors are left for a connection to gpuctld");
  const auto began = std::chrono::steady_clock::now();
  std::optional<ipc::Connection> opened = take_asked_locked();
  const ipc::Call call = attach_call(introduction_, resumed);
  Result<Answered> answered = opened ? call_with_page(*opened, call, kAttachTimeout, stub()) : fail("not asked");
  // Not asked, or that daemon has ended since.
  if (!answered && std::chrono::steady_clock::now() - began < kAttachTimeout) {
    Result<ipc::Connection> anew = ipc::Connection::open(socket_, kAttachTimeout);
    if (!anew) return anew.error();
    opened = std::move(*anew);
    answered = call_with_page(*opened, call, kAttachTimeout, stub());
  }
  if (!answered) return answered.error();
  const ipc::Reply* const reply = &answered->reply;
  if (first) turned_away_ = reply->error == kNoSlice;
  // A daemon that looks for its GPUs will answer otherwise.
  if (refused) *refused = reply->error != "io.gpuctl.NoGpu";
  // An older daemon than at the start; the next try goes without.
  if (refuses(*reply, "mps_sms")) introduction_.mps_sms.clear();
  if (refuses(*reply, "queues")) introduction_.queues = 0;
  if (refuses(*reply, "isolated")) introduction_.isolated = false;
  if (refuses(*reply, "pipe_directory")) introduction_.pipe_directory.clear();
  if (refuses(*reply, "command")) introduction_.command.clear();
  if (refuses(*reply, "exe")) introduction_.exe.clear();
  Result<Attachment> attachment =
      read_attachment(*reply, std::move(answered->page), opened->take_fds(), introduction_.slice);
  if (!attachment) return attachment.error();
  take_locked(std::move(*attachment), std::move(*opened));
  return {};
}

void Client::take_locked(Attachment attachment, ipc::Connection connection) {
  targets_ = attachment.targets;
  turned_away_ = false;
  introduction_.slice = std::move(attachment.slice);
  connection_ = std::make_unique<ipc::Connection>(std::move(connection));
  stubs_.push_back(std::move(attachment.page));
  ipc::store(stubs_.back()->beat, 1u);
  TickClock::begin();
  g_launch_words.page.store(stubs_.back().get(), std::memory_order_release);
  ToldSms::get().publish(*stubs_.back().get());
  if (stay_ != Stay::kHere) ipc::store(stubs_.back()->leaving, 1u);
  // The descriptor keeps its number, because another thread may be about to write to it.
  const int kick_fd = kick_fd_.load();
  if (kick_fd < 0 || dup3(attachment.kick.get(), kick_fd, O_CLOEXEC) < 0) kick_fd_.store(attachment.kick.release());
  said_.clear();
  debug("attached to slice %s", introduction_.slice.c_str());
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
  ipc::Call call{.method = "io.gpuctl.GetMpsPercentage",
                 .parameters = {{"slice", introduction_.slice}, {"queues", own_queues}}};
  if (!introduction_.exe.empty()) call.parameters["exe"] = introduction_.exe;
  Result<ipc::Reply> reply = opened->call(call, left());
  for (const char* const field : {"queues", "exe"})
    if (reply && refuses(*reply, field)) {  // an older daemon
      call.parameters.erase(field);
      reply = opened->call(call, left());
    }
  if (reply && reply->error == kNoSlice) return {.refused = true};
  if (!reply || !reply->error.empty()) return {};
  ipc::Fields fields(reply->parameters);
  const auto hundredths = fields.maybe_integer("hundredths", 1, 10000), queues = fields.maybe_integer("queues", 1, 32);
  const bool isolated = fields.maybe_boolean("isolated").value_or(false);
  const auto directory = fields.maybe_text("pipe_directory");
  std::optional<std::vector<gpuctl::SliceGpu>> gpus;
  if (fields.has("devices"))
    for (gpus.emplace(); const ipc::Device& device : ipc::read_list<ipc::Device>(fields, "devices"))
      gpus->push_back({.index = device.index, .uuid = device.uuid});
  if (!fields.ok()) return {};
  const MpsStart start{.hundredths = hundredths,
                       .queues = queues,
                       .isolated = isolated,
                       .pipe_directory = directory,
                       .gpus = std::move(gpus)};
  if (!queues && !isolated) return start;  // nothing that the daemon remembers by the connection
  if (queues) introduction_.queues = *start.queues;
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

void Client::set_isolated() {
  std::lock_guard lock(mutex_);
  introduction_.isolated = true;
}

void Client::set_pipe_directory(std::string directory) {
  std::lock_guard lock(mutex_);
  introduction_.pipe_directory = std::move(directory);
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
    g_launch_words.one_device = device_uuids.size() == 1;
    introduction_.device_uuids = std::move(device_uuids);
    introduction_.mps_sms = std::move(mps_sms);
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
  std::string previous = std::exchange(introduction_.slice, slice);
  wanted_ = true;
  if (introduction_.command.empty()) introduce();
  if (!started_) return {};
  connection_.reset();
  Result<void> attached = connect_locked(stub() != nullptr);
  if (!attached) introduction_.slice = previous;
  lock.unlock();
  HeldMemory::get().publish();
  return attached;
}

std::string Client::slice() const {
  std::lock_guard lock(mutex_);
  return introduction_.slice;
}

Targets Client::targets() const {
  std::lock_guard lock(mutex_);
  return targets_;
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
  constexpr std::int64_t kLongestUs = std::chrono::microseconds(kLongestWait).count();
  answer.wait = std::chrono::microseconds(std::min(fields.maybe_integer("wait_us", 0).value_or(0), kLongestUs));
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

void Client::report_stuck(const Stuck& stuck) {
  std::lock_guard lock(mutex_);
  if (!connection_) return;
  const ipc::Call call{.method = "io.gpuctl.ReportKernels",
                       .parameters = {{"kernels", boost::json::array{}},
                                      {"stuck", ipc::to_utf8(stuck.kernel)},
                                      {"sms", stuck.sms},
                                      {"ms", stuck.ms}},
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

void Client::leave(Stay stay) {
  stay_ = stay;
  if (ipc::Stub* page = stub()) ipc::store(page->leaving, 1u);
  // The thread that leaves may have been interrupted by a signal while it held this mutex. Then the connection ends
  // with the process.
  std::unique_lock lock(mutex_, std::try_to_lock);
  if (lock.owns_lock() && connection_) ::shutdown(connection_->fd(), SHUT_RDWR);
}

void Client::come_back() {
  if (stay_ != Stay::kOut) return;
  // The thread attaches, as the caller may be a signal handler, which must not allocate memory.
  comes_back_ = stub() != nullptr;
  stay_ = Stay::kHere;
  const auto until = std::chrono::steady_clock::now() + kAttachTimeout;
  while (comes_back_ && std::chrono::steady_clock::now() < until) std::this_thread::sleep_for(kShortPause);
}

void Client::forget_after_fork() {
  g_launch_words.page = nullptr;
  // The parent's threads do not exist here and may have held the mutex, so a new object replaces this one.
  new (this) Client;
}

}  // namespace gpuslice
