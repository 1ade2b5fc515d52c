#include "gpuctld/restart/holdings_record.h"

#include <utility>
#include <vector>

#include "gpuctld/restart/holdings.h"

namespace gpuctl::daemon {

HoldingsRecord::HoldingsRecord(Scheduler& scheduler, std::string file, Log log)
    : scheduler_(scheduler), file_(std::move(file)), log_(std::move(log)) {}

void HoldingsRecord::begin() {
  if (!file_.empty()) scheduler_.before_growth([this] { save(); });
}

void HoldingsRecord::tidy(std::uint64_t now_ns, bool now) {
  if (file_.empty() || (!now && std::chrono::nanoseconds(now_ns - tidied_ns_) < kTidyEvery)) return;
  tidied_ns_ = now_ns;
  stale_ |= scheduler_.record_holdings();
  if (stale_) save();
}

void HoldingsRecord::save() {
  std::vector<Holding> holdings;
  for (const Client& client : scheduler_.clients())
    for (const Client::Slot& slot : client.slots())
      if (slot.device >= 0 && slot.recorded > 0)
        holdings.push_back({client.identity().process(), client.slice(),
                            scheduler_.devices()[static_cast<std::size_t>(slot.device)].uuid, slot.recorded});
  stale_ = false;
  const auto saved = save_holdings(file_, holdings);
  if (!saved && !lost_) log_("what programs hold would not be known after a restart: " + saved.error().message);
  lost_ = !saved;
}

}  // namespace gpuctl::daemon
