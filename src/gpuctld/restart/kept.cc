#include "gpuctld/restart/kept.h"

#include <utility>

#include "gpuctld/config/state.h"
#include "gpuctld/restart/holdings.h"

namespace gpuctl::daemon {

Kept::Kept(boost::asio::io_context& context, Scheduler& scheduler, const KeptFiles& files, Configured configured,
           Log log, std::function<void()> freed)
    : scheduler_(scheduler),
      attached_file_(files.attached),
      log_(std::move(log)),
      configured_(std::move(configured)),
      state_(context, files.state, log_),
      kernels_(scheduler.knowledge(), files.kernels, log_),
      holdings_(scheduler, files.attached, log_),
      returning_(context, scheduler, log_, std::move(freed)) {}

void Kept::begin(std::uint64_t now_ns) {
  save_slices();
  kernels_.load();
  if (attached_file_.empty()) return;
  const auto holdings = load_holdings(attached_file_);
  if (!holdings) log_(holdings.error().message + "; what programs hold is not known until they come back");
  holdings_.begin();
  if (holdings) returning_.expect(*holdings, now_ns);
}

void Kept::save_slices() {
  state_.save(current_state(scheduler_.tree(), configured_));
}

Client& Kept::attach(Client client, const Conditions& conditions, std::uint64_t now_ns) {
  return returning_.attach(std::move(client), conditions, now_ns);
}

void Kept::note_gone(bool last, std::uint64_t now_ns) {
  holdings_.note_gone();
  if (last) holdings_.tidy(now_ns, true);
}

void Kept::tick(std::uint64_t now_ns) {
  kernels_.save_when_due(now_ns);
  holdings_.tidy(now_ns);
}

void Kept::stop(std::uint64_t now_ns) {
  state_.stop();
  kernels_.save(now_ns);
  returning_.stop();
}

}  // namespace gpuctl::daemon
