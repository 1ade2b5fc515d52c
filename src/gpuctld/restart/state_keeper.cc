#include "gpuctld/restart/state_keeper.h"

#include <utility>

namespace gpuctl::daemon {

StateKeeper::StateKeeper(boost::asio::io_context& context, std::string file, Log log)
    : file_(std::move(file)), log_(std::move(log)), again_(context) {}

void StateKeeper::save(State state) {
  if (file_.empty()) return;
  const bool failed_before = unsaved_.has_value();
  unsaved_ = std::move(state);
  try_to_save();
  if (unsaved_ && !failed_before) log_(problem_);
}

void StateKeeper::try_to_save() {
  const Result<void> saved = save_state(file_, *unsaved_);
  if (saved) {
    unsaved_.reset();
    again_.cancel();
    return;
  }
  problem_ = "the slices would not survive a restart: " + saved.error().message;
  again_.expires_after(kTryAgain);
  again_.async_wait([this](boost::system::error_code error) {
    if (error || !unsaved_) return;
    try_to_save();
    if (!unsaved_) log_("the slices would survive a restart again");
  });
}

void StateKeeper::stop() {
  if (unsaved_) try_to_save();
  again_.cancel();
}

}  // namespace gpuctl::daemon
