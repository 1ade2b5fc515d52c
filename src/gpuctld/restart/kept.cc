#include "gpuctld/restart/kept.h"

#include <utility>

#include "gpuctld/config/state_file.h"
#include "gpuctld/restart/holdings.h"

namespace gpuctl::daemon {

namespace {

HoldingsRecord::Store store_at(const std::string& file) {
  if (file.empty()) return {};
  return [file](const std::string& text) { return replace_file(file, text, Room::kept); };
}

}  // namespace

Kept::Kept(boost::asio::io_context& context, Scheduler& scheduler, const KeptFiles& files, Configured configured,
           Log log, std::function<void()> freed)
    : scheduler_(scheduler),
      attached_file_(files.attached),
      log_(std::move(log)),
      configured_(std::move(configured)),
      state_(context, files.state, log_),
      kernels_(LearntFile::learnt("kernels", scheduler.knowledge()), files.kernels, log_),
      isolation_(LearntFile::learnt("latencies by isolation", scheduler.isolation_record()), files.isolation, log_),
      holdings_(scheduler, store_at(files.attached), log_, &moved_),
      returning_(context, scheduler, log_, std::move(freed)) {}

void Kept::begin(std::uint64_t now_ns) {
  save_slices();
  kernels_.load();
  isolation_.load();
  if (attached_file_.empty()) return;
  const auto holdings = load_holdings(attached_file_);
  if (!holdings) log_(holdings.error().message + "; what programs hold is not known until they come back");
  if (holdings) {
    moved_.restore(holdings->moved);
    returning_.expect(*holdings, now_ns);
  }
  holdings_.begin(now_ns);  // last: a record of some of them would lose the others
}

std::vector<std::string> Kept::problems() const {
  std::vector<std::string> problems;
  for (const std::string* problem : {state_.problem(), holdings_.problem()})
    if (problem != nullptr) problems.push_back(*problem);
  return problems;
}

void Kept::save_slices() {
  state_.save(scheduler_.tree().slices(), configured_);
}

Client& Kept::attach(Client client, bool time_sliced, std::uint64_t now_ns) {
  return returning_.attach(std::move(client), time_sliced, now_ns);
}

void Kept::note_moved(std::vector<MovedProgram> programs, std::uint64_t now_ns) {
  for (MovedProgram& program : programs) moved_.note(std::move(program));
  holdings_.note_gone();
  holdings_.tidy(now_ns, true);
}

void Kept::forget_moved(const ProcessIdentity& process, std::uint64_t now_ns) {
  if (!moved_.forget(process)) return;
  holdings_.note_gone();
  holdings_.tidy(now_ns, true);
}

void Kept::note_gone(bool last, std::uint64_t now_ns) {
  holdings_.note_gone();
  if (last) holdings_.tidy(now_ns, true);
}

void Kept::tick(std::uint64_t now_ns) {
  kernels_.save_when_due(now_ns);
  isolation_.save_when_due(now_ns);
  holdings_.tidy(now_ns);
}

void Kept::stop(std::uint64_t now_ns) {
  state_.stop();
  kernels_.save(now_ns);
  isolation_.save(now_ns);
  returning_.stop();
}

}  // namespace gpuctl::daemon
