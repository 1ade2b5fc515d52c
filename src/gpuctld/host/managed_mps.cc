#include "gpuctld/host/managed_mps.h"

#include <unistd.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <utility>

#include "gpuctld/host/child_program.h"
#include "gpuctld/host/mps_control.h"
#include "gpuctld/host/mps_start.h"
#include "gpuctld/protocol/process.h"

namespace gpuctl::daemon {

namespace {

using std::chrono::steady_clock;

constexpr std::chrono::milliseconds kLookAtMps{200}, kLookForMps{10};
/// A control daemon that is started is there after this time, or is taken for one that cannot be.
constexpr std::chrono::seconds kMpsComesWithin{3};

}  // namespace

ManagedMps::ManagedMps(boost::asio::io_context& context, Place place, Log log, std::chrono::milliseconds idle,
                       std::chrono::milliseconds patience)
    : context_(context),
      timer_(context),
      impatient_(context),
      place_(std::move(place)),
      log_(std::move(log)),
      idle_(idle),
      patience_(patience),
      watch_("/proc", ::geteuid()) {
  if (!active()) return;
  serve();
  unknown_user_ = true;
}

bool ManagedMps::active() {
  return watch_.active(place_.directory);
}

bool ManagedMps::wait(const void* who, std::function<void()> then) {
  if (stopped_) return false;
  const bool runs = !starts_ && active();
  if (runs && !quits_) return false;
  if (!runs && !starts_) start();
  if (!runs && !starts_) return false;
  waiting_.insert_or_assign(who, std::move(then));
  return true;
}

void ManagedMps::start() {
  if (steady_clock::now() < next_try_) return;
  const std::string program = mps_control_program();
  if (::access(program.c_str(), X_OK) != 0) return;
  const auto heard = [this](const Result<std::string>& output) {
    output ? await(steady_clock::now() + kMpsComesWithin) : started(output);
  };
  if (!place_.start_socket.empty()) {
    auto asked =
        ask_mps_helper(context_, place_.start_socket,
                       std::string(service_mps_name(place_.directory)) + std::string(one_user_ ? kOneUser : ""), heard);
    if (!asked) return started(asked.error());
    starts_ = [question = std::move(*asked)] { question->cancel(); };
    return be_patient();
  }
  if (const auto made = make_mps_directory(place_.directory); !made) return started(made.error());
  auto child = ChildProgram::start(context_, program, mps_environment(place_.directory, place_.socket), "", heard,
                                   mps_arguments(program, "-d", one_user_));
  if (!child) return started(child.error());
  starts_ = [started = std::move(*child)] { started->kill(); };
  be_patient();
}

void ManagedMps::after(boost::asio::steady_timer& timer, std::chrono::milliseconds wait, std::function<void()> then) {
  timer.expires_after(wait);
  timer.async_wait([this, then = std::move(then), lives = std::weak_ptr(lives_)](boost::system::error_code error) {
    if (!error && !lives.expired() && !stopped_) then();
  });
}

/// Its control daemon comes up.
void ManagedMps::await(steady_clock::time_point until) {
  if (active() || steady_clock::now() >= until) return started(std::string());
  after(timer_, kLookForMps, [this, until] { await(until); });
}

void ManagedMps::started(const Result<std::string>& output) {
  impatient_.cancel();
  starts_ = nullptr;
  if (output && active()) {
    log_("started MPS" + place_.whose + ", with libgpuslice inside");
    trouble_.clear();
    serve();
  } else if (!std::exchange(one_user_, true) && knows_several_users(mps_control_program())) {
    start();  // perhaps it goes without
    if (starts_) return;
  } else {
    one_user_ = false;
    put_off();
    trouble_ = output ? "its control daemon is not there" : output.error().message;
    log_("MPS" + place_.whose + " was not started: " + trouble_ + "; programs take turns");
  }
  answer();
}

void ManagedMps::be_patient() {
  after(impatient_, patience_, [this] { give_up(); });
}

/// What was asked of it is not done, or not done with.
void ManagedMps::give_up() {
  if (asks_) std::exchange(asks_, nullptr)();
  if (starts_) {
    timer_.cancel();
    std::exchange(starts_, nullptr)();
    return started(fail("NVIDIA's control program does not answer"));
  }
  keep();
}

void ManagedMps::answer() {
  const bool goes_on = !answered_.empty();
  answered_.merge(waiting_);
  if (!goes_on) answer_next();
}

void ManagedMps::answer_next() {
  if (answered_.empty()) return;
  boost::asio::post(context_, [this, lives = std::weak_ptr(lives_)] {
    if (lives.expired() || answered_.empty()) return;
    const auto next = answered_.extract(answered_.begin());
    answer_next();
    next.mapped()();
  });
}

void ManagedMps::put_off() {
  pause_ = std::clamp(2 * pause_, kMpsFirstPause, kMpsLongestPause);
  next_try_ = steady_clock::now() + pause_;
}

void ManagedMps::serve() {
  quits_ = false;
  began_ = used_ = steady_clock::now();
  user_.reset();
  unknown_user_ = false;
  const auto control = mps_process_in(place_.directory, "/proc", ::geteuid());
  several_users_ = control && was_started_with(*control, kSeveralUsers);
  const auto users = control ? users_of(*control) : std::nullopt;
  owner_ = users ? users->effective : ::geteuid();
  look();
}

/// Watches it, while it runs.
void ManagedMps::look() {
  const auto now = steady_clock::now();
  if (in_use_) used_ = now;
  if (!active()) {
    impatient_.cancel();
    if (now - began_ >= kMpsLongestPause) pause_ = {};
    if (!std::exchange(quits_, false)) {
      put_off();
      return log_("MPS" + place_.whose + " has ended; it is started again for the next program");
    }
    log_("ended MPS" + place_.whose + ", which nobody used");
    if (!waiting_.empty()) start();
    if (!starts_) answer();
    return;
  }
  if (now - used_ >= idle_ && !asks_ && !quits_) end_unless_used();  // else who waits would wait for the next try too
  after(timer_, kLookAtMps, [this] { look(); });
}

bool ManagedMps::admits(std::uint32_t uid) {
  if (starts_ || quits_ || !active()) return false;
  const auto now = steady_clock::now();
  if (!several_users_ && owner_ != 0 && uid != owner_) return false;
  if (!several_users_ && owner_ == 0) {
    if (unknown_user_) return false;
    if (user_ && *user_ != uid && (in_use_ || now - used_ < kMpsFirstPause)) return false;
    user_ = uid;
  }
  used_ = now;  // it is about to come
  return true;
}

void ManagedMps::ask(const std::string& command, std::function<void(const std::string& output)> next) {
  const auto heard = [this, next = std::move(next)](const Result<std::string>& output) {
    impatient_.cancel();
    asks_ = nullptr;
    output && !lacks_privileges(*output) ? next(*output) : keep();
  };
  if (!place_.control_socket.empty()) {
    const std::string whose = "@" + std::string(service_mps_name(place_.directory)) + " ";
    auto asked = ask_mps_helper(context_, place_.control_socket, whose + command, heard);
    if (!asked) return;
    asks_ = [question = std::move(*asked)] { question->cancel(); };
    return be_patient();
  }
  auto child = start_mps_control(context_, mps_control_program(), place_.directory, command, heard);
  if (!child) return;
  asks_ = [started = std::move(*child)] { started->kill(); };
  be_patient();
}

/// It is not ended now. Whether it is used is asked again later.
void ManagedMps::keep() {
  used_ = steady_clock::now();
  quits_ = false;
  answer();
}

/// Others than programs of slices may have come to it.
void ManagedMps::end_unless_used() {
  ask("get_server_list", [this](const std::string& output) { ask_clients(pids_in(output)); });
}

void ManagedMps::ask_clients(std::vector<std::int32_t> servers) {
  if (steady_clock::now() - used_ < idle_) return;
  if (servers.empty()) {
    unknown_user_ = false;
    used_ = steady_clock::now();                                // if it is there after a while, it is asked again
    ask("quit", [this](const std::string&) { be_patient(); });  // until it has ended
    quits_ = asks_ != nullptr;
    return;
  }
  const std::int32_t server = servers.back();
  servers.pop_back();
  ask("get_client_list " + std::to_string(server),
      [this, servers](const std::string& output) { pids_in(output).empty() ? ask_clients(servers) : keep(); });
}

void ManagedMps::note_use(std::optional<std::uint32_t> user) {
  in_use_ = user.has_value();
  if (in_use_ && std::exchange(unknown_user_, false)) user_ = user;
}

void ManagedMps::stop() {
  stopped_ = true;
  waiting_.clear();
  answered_.clear();
  timer_.cancel();
  impatient_.cancel();
  for (const auto& end : {starts_, asks_})
    if (end) end();
}

}  // namespace gpuctl::daemon
