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

void Ends::end(std::vector<Program> programs, EndOrder order, const AllEnded& done) {
  struct Group {
    std::vector<ipc::EndedClient> results;
    std::size_t left;
    AllEnded done;
  };
  const auto group = std::make_shared<Group>(Group{{}, programs.size(), done});
  const auto one_ended = [group](const ipc::EndedClient& result) {
    group->results.push_back(result);
    if (--group->left == 0) group->done(std::move(group->results));
  };
  const bool mps = mps_active();
  std::map<std::int32_t, std::weak_ptr<Ending>> asked;
  for (Program& program : programs) {
    const std::int32_t pid = program.identity.pid;
    ipc::EndedClient client{pid, program.identity.command, std::move(program.slice), "not active", {}, false};
    if (!program.pidfd) {
      log_("process " + std::to_string(pid) + " cannot be ended: there is no pidfd of it");
      boost::asio::post(context_, [one_ended, client] { one_ended(client); });
      continue;
    }
    const auto check = [process = program.identity.process()] { return may_signal(process); };
    const auto ending =
        Ending::create(context_, std::move(program.pidfd), std::move(client), order, check, log_,
                       [this, one_ended](const ipc::EndedClient& result) {
                         std::erase_if(endings_, [&](const auto& e) { return e->pid() == result.pid && e->over(); });
                         one_ended(result);
                       });
    ending->on_killed([this, pid] { killed_(pid); });
    endings_.insert(ending);
    const bool ask_mps = mps && check() == MaySignal::yes;  // MPS knows processes by their number alone
    if (ask_mps) asked.emplace(pid, ending);
    ending->start(ask_mps);
  }
  if (!mps || asked.empty()) return;
  std::vector<std::int32_t> pids;
  for (const auto& [pid, ending] : asked) pids.push_back(pid);
  mps_.terminate({.program = mps_control_program(), .pipe_directory = mps_pipe_directory(), .socket = mps_socket_},
                 std::move(pids), [asked = std::move(asked)](std::int32_t pid, const MpsControl::Outcome& outcome) {
                   if (const auto ending = asked.at(pid).lock()) ending->mps_answered(outcome);
                 });
}

bool Ends::is_ending(std::int32_t pid) const {
  return std::any_of(endings_.begin(), endings_.end(), [pid](const auto& ending) { return ending->pid() == pid; });
}

void Ends::stop() {
  mps_.stop();
  for (const auto& ending : endings_) ending->cancel();
  endings_.clear();
}

}  // namespace gpuctl::daemon
