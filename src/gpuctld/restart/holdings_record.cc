#include "gpuctld/restart/holdings_record.h"

#include <algorithm>
#include <utility>

#include "gpuctld/restart/holdings.h"

namespace gpuctl::daemon {

HoldingsRecord::HoldingsRecord(Scheduler& scheduler, Store store, Log log, const Moved* moved)
    : scheduler_(scheduler), store_(std::move(store)), log_(std::move(log)), moved_(moved) {}

void HoldingsRecord::begin(std::uint64_t now_ns) {
  if (!store_) return;
  scheduler_.before_growth([this](std::uint64_t now) { return save(now); });
  for (int i = 0; i < 2; ++i) scheduler_.record(now_ns);  // the earlier file has room then too (Room::kept)
}

void HoldingsRecord::tidy(std::uint64_t now_ns, bool now) {
  if (!store_) return;
  if (problem_.empty() && !now && std::chrono::nanoseconds(now_ns - tidied_ns_) < kTidyEvery) return;
  tidied_ns_ = now_ns;
  stale_ |= scheduler_.record_is_stale();
  if (stale_ || work_is_stale()) scheduler_.record(now_ns);
}

/// A hold is not for so short that an eighth of it matters, and one that is shorter than a restart matters to nobody.
bool HoldingsRecord::work_is_stale() const {
  static constexpr int kPart = 8;
  const auto known = [this](const Scheduler::Worked& now) {
    const auto before = std::ranges::find_if(
        worked_, [&](const Scheduler::Worked& then) { return then.slice == now.slice && then.device == now.device; });
    const std::chrono::nanoseconds late(now.last_ns - (before == worked_.end() ? 0 : before->last_ns));
    return late <= std::max<std::chrono::nanoseconds>(now.hold / kPart, kTidyEvery);
  };
  const auto worked = scheduler_.worked();
  return std::ranges::any_of(worked,
                             [&](const Scheduler::Worked& now) { return now.hold > kTidyEvery && !known(now); });
}

bool HoldingsRecord::save(std::uint64_t now_ns) {
  if (!problem_.empty() && now_ns < again_ns_) return false;
  Holdings holdings;
  for (const Client& client : scheduler_.clients())
    for (const Client::Slot& slot : client.slots())
      if (slot.device >= 0 && slot.to_record != Promise{})
        holdings.attached.push_back({client.identity().process(), client.slice(),
                                     scheduler_.devices()[static_cast<std::size_t>(slot.device)].uuid, slot.to_record});
  if (moved_ != nullptr) holdings.moved = moved_->programs();
  auto worked = scheduler_.worked();
  for (const Scheduler::Worked& work : worked)
    holdings.worked.push_back({work.slice, scheduler_.devices()[work.device].uuid, work.last_ns});
  const auto text = holdings_text(holdings);
  const Result<void> saved = text ? store_(*text) : Result<void>(text.error());
  stale_ = !saved;
  if (!saved) {
    const std::string problem = "nothing more is granted than is recorded: " + saved.error().message;
    if (problem_.empty()) log_(problem), pause_ = kFirstPause;
    problem_ = problem;
    again_ns_ = now_ns + static_cast<std::uint64_t>(pause_.count());
    pause_ = std::min<std::chrono::nanoseconds>(2 * pause_, kLongestPause);
    return false;
  }
  worked_ = std::move(worked);
  if (!std::exchange(problem_, {}).empty()) log_("what is granted is recorded again");
  return true;
}

}  // namespace gpuctl::daemon
