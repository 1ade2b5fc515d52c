// What was used: kept from time to time, and told.
#include <algorithm>
#include <utility>

#include "gpuctld/clock.h"
#include "gpuctld/manager/manager.h"
#include "gpuctld/protocol/answers.h"
#include "ipc/codec.h"
#include "ipc/message.h"
#include "sched/slices.h"

namespace gpuctl::daemon {

namespace {

/// The year 9999: SQLite adds the length of a span to it.
constexpr std::int64_t kLatestS = 253'402'300'800;

std::int64_t epoch_s() {
  return epoch_us() / 1'000'000;
}

}  // namespace

void Manager::keep_usage() {
  const Accounts used = scheduler_.take_accounts(now_ns());
  energy_shares_.add(used);
  for (const auto& [key, amounts] : used)
    sched::for_each_up(key.slice, [this, more = amounts.sm_s](std::string_view path) {
      if (more > 0 && scheduler_.tree().find(path) != nullptr) sm_seconds_[std::string(path)] += more;
    });
  usage_.add(used, epoch_s());
}

/// The energy that GPUs have used is whose programs used it, and counts to the slices above too, which keep it when the
/// slice itself is gone.
void Manager::share_energy(const std::vector<Gpu>& gpus) {
  keep_usage();
  Accounts joules;
  for (const Gpu& gpu : scheduler_.devices()) {
    const auto read = std::ranges::find(gpus, gpu.uuid, &Gpu::uuid);
    if (read == gpus.end() || !read->millijoules) continue;
    knows_energy_ = true;
    joules.merge(energy_shares_.read(gpu.uuid, gpu.sms, *read->millijoules, now_ns()));
  }
  for (const auto& [key, used] : joules)
    sched::for_each_up(key.slice, [this, more = used.joules](std::string_view path) {
      if (scheduler_.tree().find(path) != nullptr) joules_[std::string(path)] += more;
    });
  usage_.add(joules, epoch_s());
  if (!scheduler_.clients().empty()) return;
  energy_watch_.rest();
  energy_shares_.rest();
}

/// A program is there: what it uses is kept from now on, until none is.
void Manager::keep_usage_later() {
  energy_watch_.begin();
  if (std::exchange(keeps_, true)) return;
  keeping_.expires_after(UsageKeeper::kPeriod);
  keeping_.async_wait([this](boost::system::error_code error) {
    keeps_ = false;
    if (error) return;
    keep_usage();
    if (!scheduler_.clients().empty()) keep_usage_later();
  });
}

Answer Manager::get_usage(Session& session, ipc::Fields& fields) {
  UsageQuestion question{.since = fields.maybe_integer("since", 0, kLatestS),
                         .until = fields.maybe_integer("until", 0, kLatestS),
                         .slice = fields.maybe_text("slice"),
                         .uid = {},
                         .gpu = fields.maybe_text("gpu")};
  const auto uid = fields.maybe_integer("uid", 0, sched::kNobody);
  fields.refuse_unknown();
  if (!fields.ok()) return invalid(fields);
  const std::uint32_t asker = session.peer().uid;
  if (uid)
    question.uid = static_cast<std::uint32_t>(*uid);
  else if (!budgets_.exempt(asker))
    question.uid = asker;
  // Owners of a slice are not told of others in it either: it may have the name of a slice that was somebody else's.
  if (question.uid != asker && !budgets_.exempt(asker)) return refuse_of_user(*question.uid);
  keep_usage();
  const auto uid_that_waits = budgets_.exempt(asker) ? std::nullopt : std::optional(asker);
  usage_.ask(std::move(question), uid_that_waits,
             [this, session = session.weak_from_this()](const Result<Accounts>& sums) {
               if (const auto waiting = session.lock()) waiting->finish(tell_usage(sums));
             });
  Answer answer = success();
  answer.later = true;
  return answer;
}

Answer Manager::tell_usage(const Result<Accounts>& sums) const {
  if (!sums) return refuse_own("Unavailable", {{"reason", ipc::to_utf8(sums.error().message)}});
  std::vector<ipc::UsageEntry> entries;
  for (const auto& [key, used] : *sums) {
    entries.push_back({.slice = key.slice,
                       .uid = key.uid,
                       .gpu = key.gpu,
                       .sm_seconds = used.sm_s,
                       .work_seconds = used.work_s,
                       .waited_seconds = used.waited_s,
                       .memory_byte_seconds = used.memory_byte_s,
                       .joules = used.joules,
                       .launches = used.launches,
                       .bursts = used.bursts,
                       .evictions = used.evictions});
    const auto gpu = std::ranges::find(scheduler_.devices(), key.gpu, &Gpu::uuid);
    if (gpu != scheduler_.devices().end()) entries.back().device = gpu->index;
  }
  return success({{"entries", ipc::to_json(entries)}});
}

}  // namespace gpuctl::daemon
