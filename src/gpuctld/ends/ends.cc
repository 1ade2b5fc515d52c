#include "gpuctld/ends/ends.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <map>
#include <utility>

#include "gpuctld/host/mps.h"

namespace gpuctl::daemon {

Ends::Ends(boost::asio::io_context& context, std::string mps_socket, Log log,
           std::function<void(std::int32_t pid)> killed)
    : context_(context),
      mps_socket_(std::move(mps_socket)),
      log_(std::move(log)),
      killed_(std::move(killed)),
      mps_(context) {}

/// Of one who asked.
struct Ends::Asked {
  std::vector<ipc::EndedClient> results;
  std::size_t left = 0;
  AllEnded done;

  void ended(const ipc::EndedClient& result) {
    results.push_back(result);
    if (--left == 0) done(std::move(results));
  }
};

std::shared_ptr<void> Ends::end(std::vector<Program> programs, EndOrder order, std::uint32_t for_uid, AllEnded done) {
  const auto asked = std::make_shared<Asked>(Asked{{}, programs.size(), std::move(done)});
  using Endings = std::map<std::int32_t, std::weak_ptr<Ending>>;
  std::map<std::string, Endings> ask_mps;  // by pipe directory
  for (Program& program : programs) {
    const std::int32_t pid = program.identity.pid;
    if (const auto under_way = endings_.find(pid); under_way != endings_.end()) {
      std::erase_if(under_way->second.asked, [](const auto& one) { return one.expired(); });
      under_way->second.asked.push_back(asked);
      under_way->second.ending->again(order);
      continue;
    }
    ipc::EndedClient client{pid, program.identity.command, std::move(program.slice), "not active", {}, false};
    const auto log = [this, for_uid](const std::string& line) { log_(for_uid, line); };
    if (!program.pidfd) {
      log("process " + std::to_string(pid) + " cannot be ended: there is no pidfd of it");
      boost::asio::post(context_, [one = std::weak_ptr(asked), client] {
        if (const auto waiting = one.lock()) waiting->ended(client);
      });
      continue;
    }
    const auto check = [process = program.identity.process()] { return may_signal(process); };
    const auto ending = Ending::create(context_, std::move(program.pidfd), std::move(client), order, check, log,
                                       [this](const ipc::EndedClient& result) { ended(result); });
    ending->on_killed([this, pid] { killed_(pid); });
    endings_.emplace(pid, UnderWay{ending, for_uid, {asked}});
    const bool by_mps =
        !program.pipe_directory.empty() && check() == MaySignal::yes;  // MPS knows processes by their number alone
    if (by_mps) ask_mps[program.pipe_directory].emplace(pid, ending);
    ending->start(by_mps);
  }
  for (auto& [directory, endings] : ask_mps) {
    std::vector<std::int32_t> pids;
    for (const auto& [pid, ending] : endings) pids.push_back(pid);
    mps_.terminate({.program = mps_control_program(), .pipe_directory = directory, .socket = mps_socket_},
                   std::move(pids), [asks = std::move(endings)](std::int32_t pid, const MpsControl::Outcome& outcome) {
                     if (const auto ending = asks.at(pid).lock()) ending->mps_answered(outcome);
                   });
  }
  return asked;
}

void Ends::ended(const ipc::EndedClient& result) {
  const auto over = endings_.extract(static_cast<std::int32_t>(result.pid));
  for (const std::weak_ptr<Asked>& one : over.mapped().asked)
    if (const auto waiting = one.lock()) waiting->ended(result);
}

std::size_t Ends::under_way(std::uint32_t for_uid) const {
  return static_cast<std::size_t>(
      std::ranges::count_if(endings_, [for_uid](const auto& entry) { return entry.second.for_uid == for_uid; }));
}

void Ends::stop() {
  mps_.stop();
  for (const auto& [pid, one] : endings_) one.ending->cancel();
  endings_.clear();
}

}  // namespace gpuctl::daemon
