#include "gpuctld/restart/state_keeper.h"

#include <utility>

namespace gpuctl::daemon {

StateKeeper::StateKeeper(boost::asio::io_context& context, std::string file, Log log)
    : keeps_(!file.empty()), writer_(std::move(file)), log_(std::move(log)), again_(context) {}

void StateKeeper::save(const sched::Slices& slices, const std::map<std::string, std::string>& configured) {
  if (!keeps_) return;
  const bool failed_before = !problem_.empty();
  note(writer_.write(slices, configured));
  if (!problem_.empty() && !failed_before) log_(problem_);
}

void StateKeeper::note(const Result<void>& saved) {
  if (saved) {
    problem_.clear();
    again_.cancel();
    return;
  }
  problem_ = "the slices would not survive a restart: " + saved.error().message;
  again_.expires_after(kTryAgain);
  again_.async_wait([this](boost::system::error_code error) {
    if (error || problem_.empty()) return;
    note(writer_.write());
    if (problem_.empty()) log_("the slices would survive a restart again");
  });
}

void StateKeeper::stop() {
  if (keeps_) (void)writer_.write_whole();
  again_.cancel();
}

}  // namespace gpuctl::daemon
