#include "gpuctld/host/mps_control.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <charconv>
#include <utility>

#include "gpuctld/host/mps_helper.h"
#include "gpuctld/host/mps_start.h"

namespace gpuctl::daemon {

namespace asio = boost::asio;
using boost::system::error_code;
using std::chrono::steady_clock;

namespace {

/// Its answer to `terminate_client` that did so.
constexpr std::string_view kSuccess = "0";

/// What to do about that.
std::string of_another_user(const MpsControl::Place& place) {
  const std::string who = "MPS was started by another user, and obeys that user and root alone: ";
  if (place.socket.empty())
    return who + "gpuctld must run as that user, or with --mps-control-socket (gpuctld.service(8))";
  return who + "'gpuctld --mps-control' behind " + place.socket + " must run as one of them";
}

}  // namespace

std::vector<std::int32_t> pids_in(std::string_view answer) {
  std::vector<std::int32_t> pids;
  while (!answer.empty()) {
    std::string_view line = answer.substr(0, answer.find('\n'));
    answer.remove_prefix(std::min(answer.size(), line.size() + 1));
    const std::size_t last = line.find_last_not_of(" \t\r");
    line = line.substr(0, last == line.npos ? 0 : last + 1);
    line.remove_prefix(std::min(line.size(), line.find_first_not_of(" \t")));
    std::int32_t pid = 0;
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), pid);
    if (error == std::errc{} && end == line.data() + line.size() && pid > 0) pids.push_back(pid);
  }
  return pids;
}

bool lacks_privileges(std::string_view answer) {
  return answer.starts_with("Insufficient privileges");
}

Result<std::shared_ptr<ChildProgram>> start_mps_control(asio::io_context& context, const std::string& program,
                                                        const std::string& pipe_directory, const std::string& command,
                                                        ChildProgram::Done done) {
  return ChildProgram::start(context, program, {"CUDA_MPS_PIPE_DIRECTORY=" + pipe_directory}, command + "\n",
                             std::move(done));
}

Result<std::shared_ptr<HelperQuestion>> ask_mps_helper(asio::io_context& context, const std::string& socket,
                                                       const std::string& command, HelperQuestion::Done done) {
  const auto heard = [socket, done = std::move(done)](const Result<std::string>& answer) {
    if (!answer) return done(answer);
    const auto output = from_mps_answer(*answer);
    done(output ? output : fail(socket + ": " + output.error().message));
  };
  return HelperQuestion::ask(context, socket, command + "\n", "cannot give commands for MPS", heard);
}

std::string no_mps_answer(const std::string& asked, std::chrono::milliseconds within) {
  return asked + " did not answer within " + std::to_string(within.count()) + " ms";
}

void MpsControl::terminate(Place place, std::vector<std::int32_t> pids, Done done) {
  if (pids.empty()) return;
  tasks_.push_back({std::move(place), std::move(pids), std::move(done)});
  if (tasks_.size() == 1)
    asio::post(context_, [this, mine = generation_] {
      if (mine == generation_) begin();
    });
}

void MpsControl::stop() {
  tasks_.clear();
  end_task();
}

/// Forgets the current task and all that it waits for.
void MpsControl::end_task() {
  ++generation_;
  begun_ = false;
  timer_.cancel();
  pause_.reset();
  servers_.clear();
  listed_.clear();
  if (const auto give_up = std::exchange(give_up_, nullptr)) give_up();
}

void MpsControl::begin() {
  if (begun_ || tasks_.empty()) return;
  begun_ = true;
  restart_deadline();
  run("get_server_list", [this](const std::string& output) {
    servers_ = pids_in(output);
    list_clients();
  });
}

void MpsControl::restart_deadline() {
  const auto deadline = tasks_.front().place.deadline;
  timer_.expires_after(deadline);
  timer_.async_wait([this, deadline, mine = generation_](error_code error) {
    if (error || mine != generation_) return;
    const Place& place = tasks_.front().place;
    fail_all(no_mps_answer(place.socket.empty() ? place.program : place.socket, deadline));
  });
}

/// Runs the control program once; `next` gets its output. A run that fails ends the task, and so does a refusal.
void MpsControl::run(const std::string& command, Next next) {
  const auto started =
      start(command, [this, mine = generation_, next = std::move(next)](const Result<std::string>& output) {
        if (mine != generation_) return;
        give_up_ = nullptr;
        if (!output) return fail_all(output.error().message);
        if (lacks_privileges(*output)) return fail_all(of_another_user(tasks_.front().place));
        next(*output);
      });
  if (!started) fail_all(started.error().message);
}

/// Has this process, or the one behind the socket, run the control program.
Result<void> MpsControl::start(const std::string& command, Heard heard) {
  const Place& place = tasks_.front().place;
  if (!place.socket.empty()) {
    const std::string_view name = service_mps_name(place.pipe_directory);
    const std::string whose = name.empty() ? "" : "@" + std::string(name) + " ";
    auto question = ask_mps_helper(context_, place.socket, whose + command, std::move(heard));
    if (!question) return question.error();
    give_up_ = [asked = std::move(*question)] { asked->cancel(); };
    return {};
  }
  auto child = start_mps_control(context_, place.program, place.pipe_directory, command, std::move(heard));
  if (!child) return child.error();
  give_up_ = [started = std::move(*child)] { started->kill(); };
  return {};
}

/// Asks one server after the other which of the processes are its clients.
void MpsControl::list_clients() {
  if (!servers_.empty()) {
    const std::int32_t server = servers_.back();
    servers_.pop_back();
    return run("get_client_list " + std::to_string(server), [this, server](const std::string& output) {
      const std::vector<std::int32_t>& wanted = tasks_.front().pids;
      for (const std::int32_t client : pids_in(output))
        if (std::find(wanted.begin(), wanted.end(), client) != wanted.end()) listed_.push_back({server, client});
      list_clients();
    });
  }
  const std::vector<std::int32_t> pids = tasks_.front().pids;
  for (const std::int32_t pid : pids)
    if (std::none_of(listed_.begin(), listed_.end(), [&](const Listed& l) { return l.client == pid; }))
      answer(pid, {Outcome::not_listed, ""});
  terminate_next();
}

void MpsControl::terminate_next() {
  if (listed_.empty()) {
    tasks_.pop_front();
    end_task();
    return begin();
  }
  const Listed next = listed_.front();
  listed_.pop_front();
  run("terminate_client " + std::to_string(next.server) + " " + std::to_string(next.client),
      [this, next](const std::string& output) {
        const bool refused = !pids_in(output).empty();  // the number of a CUDA error, alone on its line; 0 is success
        wait_until_gone(next, first_line(output), refused, steady_clock::now());
      });
}

/// A client that MPS refused to terminate is not waited for. It may have left by itself. One that MPS says it
/// terminated is waited for, as its successors begin sooner once it is gone. But an idle one may stay listed until it
/// calls the driver again.
void MpsControl::wait_until_gone(Listed client, std::string said, bool refused, steady_clock::time_point since) {
  run("get_client_list " + std::to_string(client.server), [=, this](const std::string& output) {
    const std::vector<std::int32_t> clients = pids_in(output);
    const bool gone = std::find(clients.begin(), clients.end(), client.client) == clients.end();
    if (gone || refused || steady_clock::now() - since >= kMpsListedFor) {
      restart_deadline();
      const std::string still = "the MPS server still lists it " +
                                (refused ? "" : std::to_string(kMpsListedFor.count()) + " ms ") +
                                "after terminate_client";
      answer(client.client,
             gone || said == kSuccess
                 ? Outcome{Outcome::terminated, ""}
                 : Outcome{Outcome::failed, still + (said.empty() ? "" : ", which said '" + said + "'")});
      return terminate_next();
    }
    pause_.emplace(context_, kMpsLookEvery);
    pause_->async_wait([this, client, said, since, mine = generation_](error_code error) {
      if (!error && mine == generation_) wait_until_gone(client, said, false, since);
    });
  });
}

/// Answers for a process once, even if several servers list it.
void MpsControl::answer(std::int32_t pid, Outcome outcome) {
  if (std::erase(tasks_.front().pids, pid) == 0) return;
  asio::post(context_, [done = tasks_.front().done, pid, outcome = std::move(outcome)] { done(pid, outcome); });
}

void MpsControl::fail_all(const std::string& reason) {
  const std::vector<std::int32_t> pids = tasks_.front().pids;
  for (const std::int32_t pid : pids) answer(pid, {Outcome::failed, reason});
  tasks_.pop_front();
  end_task();
  if (!tasks_.empty())
    asio::post(context_, [this, mine = generation_] {
      if (mine == generation_) begin();
    });
}

}  // namespace gpuctl::daemon
