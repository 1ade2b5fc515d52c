#include "libgpuslice/streams/green.h"

#include <algorithm>
#include <utility>

#include "libgpuslice/base/debug.h"
#include "libgpuslice/base/driver.h"
#include "libgpuslice/base/pair_choice.h"
#include "libgpuslice/base/pair_order.h"
#include "libgpuslice/base/patience.h"
#include "libgpuslice/base/stage.h"

namespace gpuslice {

namespace {

constexpr char kRefused[] = "the driver made no green context, or no stream of it";
constexpr char kAllInUse[] = "as many green contexts as there may be are in use";

int priority_of(CUstream stream) {
  int priority = 0;
  driver().cuStreamGetPriority(stream, &priority);
  return priority;
}

}  // namespace

/// Splits the device into groups, or pairs, at the first call. There are none if that is not possible.
void GreenContexts::divide(Division& division, bool pairs) {
  if (division.divided || division.refusal.stands()) return;
  if (pairs) divide(groups_, false);
  const Driver& d = driver();
  division.divided = true;
  if (!d.cuCtxGetDevResource || !d.cuDevSmResourceSplitByCount || !d.cuDevResourceGenerateDesc || !d.cuGreenCtxCreate ||
      !d.cuGreenCtxDestroy || !d.cuGreenCtxStreamCreate)
    return;
  const auto refused = [&division] {
    division.divided = false;
    division.refusal.note(Refusal::Clock::now());
  };
  CUdevResource all{}, rest{};
  CUcontext current = nullptr;
  if ((pairs && !groups_.divided) || d.cuCtxGetCurrent(&current) != CUDA_SUCCESS ||
      d.cuCtxGetDevResource(current, &all, CU_DEV_RESOURCE_TYPE_SM) != CUDA_SUCCESS)
    return refused();
  const unsigned least = pairs ? kPairSms : group_sms(all.sm.smCount);
  const unsigned flags = pairs ? CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING : 0;
  unsigned count = std::max(all.sm.smCount / least, 1u);
  std::vector<CUdevResource>& groups = division.groups;
  groups.resize(count);
  if (d.cuDevSmResourceSplitByCount(groups.data(), &count, &all, &rest, flags, least) != CUDA_SUCCESS) {
    groups.clear();
    return refused();
  }
  groups.resize(count);
  if (count > 0 && rest.type == CU_DEV_RESOURCE_TYPE_SM && rest.sm.smCount > 0) groups.push_back(rest);
  if (pairs && count > 0) {
    groups = in_order_of_groups(groups, groups_.groups);
    debug("the device has %u pairs of SMs%s", count, groups.empty() ? ", and it is not known where they lie" : "");
  }
  division.refusal.over();
  division.starts.assign(1, 0);
  for (const CUdevResource& group : groups) division.starts.push_back(division.starts.back() + group.sm.smCount);
}

/// Pairs, if wanted and the driver makes them, else groups.
GreenContexts::Division& GreenContexts::division(bool pairs) {
  if (pairs) divide(pairs_, true);
  if (pairs && !pairs_.groups.empty() && !pairs_.refusal.stands()) return pairs_;
  divide(groups_, false);
  return groups_;
}

bool GreenContexts::make_part(const Choice& choice, Part& part) {
  Division& division = *choice.division;
  const auto [begin, end] = choice.groups;
  CUdevResourceDesc description = nullptr;
  CUdevice device = 0;
  if (driver().cuCtxGetDevice(&device) != CUDA_SUCCESS ||
      driver().cuDevResourceGenerateDesc(&description, division.groups.data() + begin,
                                         static_cast<unsigned>(end - begin)) != CUDA_SUCCESS)
    return false;
  const Stage stage("making a green context");
  const CUresult result = driver().cuGreenCtxCreate(&part.context, description, device, CU_GREEN_CTX_DEFAULT_STREAM);
  debug("green context of SMs %u to %u%s: %d", division.starts[begin], division.starts[end],
        &division == &pairs_ ? ", in pairs" : "", result);
  return result == CUDA_SUCCESS;
}

void GreenContexts::destroy(Part& part) {
  for (const auto& [lane, stream] : part.streams) driver().cuStreamDestroy_v2(stream);
  driver().cuGreenCtxDestroy(part.context);
}

/// Who held a part made its launches before, so what is not held and idle stays idle. False: there is none.
bool GreenContexts::give_one_back() {
  Division* of = nullptr;
  std::map<GroupRun, Part>::iterator oldest;
  for (Division* division : {&groups_, &pairs_}) {
    for (auto at = division->parts.begin(); at != division->parts.end(); ++at) {
      const Part& part = at->second;
      if (part.hold.use_count() > 1 || (of && oldest->second.used < part.used)) continue;
      if (!std::ranges::all_of(part.streams,
                               [](const auto& entry) { return driver().cuStreamQuery(entry.second) == CUDA_SUCCESS; }))
        continue;
      of = division;
      oldest = at;
    }
  }
  if (!of) return false;
  const auto [begin, end] = oldest->first;
  debug("gives back the green context of SMs %u to %u%s", of->starts[begin], of->starts[end],
        of == &pairs_ ? ", in pairs" : "");
  destroy(oldest->second);
  of->parts.erase(oldest);
  return true;
}

/// Null, or why there is none.
const char* GreenContexts::make(const Choice& choice, const Wanted& wanted) {
  std::map<GroupRun, Part>& parts = choice.division->parts;
  auto known = parts.find(choice.groups);
  if (known == parts.end()) {
    while (groups_.parts.size() + pairs_.parts.size() >= kMostParts)
      if (!give_one_back()) return kAllInUse;
    Part part;
    if (!make_part(choice, part)) return kRefused;
    part.hold = std::make_shared<char>();
    known = parts.emplace(choice.groups, std::move(part)).first;
  }
  Part& part = known->second;
  const std::pair<const void*, int> its{wanted.lane, priority_of(wanted.like)};
  if (part.streams.contains(its)) return nullptr;
  const Stage stage("making a stream of a green context");
  CUstream stream = nullptr;
  if (driver().cuGreenCtxStreamCreate(&stream, part.context, CU_STREAM_NON_BLOCKING, its.second) != CUDA_SUCCESS)
    return kRefused;
  part.streams.emplace(its, stream);
  return nullptr;
}

GreenContexts::Confined GreenContexts::choose(const Wanted& wanted, Choice& choice) {
  Division& chosen = division(wanted.part.pairs);
  if (chosen.groups.empty()) return {.none = "the driver has no green contexts"};
  const std::vector<std::uint32_t>& starts = chosen.starts;
  // Under a percentage of MPS the driver may divide fewer SMs than the daemon counts places on.
  const std::uint32_t count = wanted.part.count, first = first_within(wanted.part.first, count, starts.back());
  choice = {&chosen, choose_groups(starts, first, count, wanted.part.common)};
  const auto [begin, end] = choice.groups;
  if (begin == end) return {.none = "no whole group of SMs is granted"};
  const std::uint32_t sms = starts[end] - starts[begin];
  if (sms < wanted.least)
    return {.none = "those granted do not hold all its blocks at once, which may wait for each other"};
  return {.sms = sms, .pairs = &chosen == &pairs_};
}

GreenContexts::Confined GreenContexts::find(const Wanted& wanted, Hold& hold) {
  // The driver may be waiting in make() for what the program does after this launch.
  const std::unique_lock lock(mutex_, 2 * Patience::kWhileItMayWait);
  if (!lock.owns_lock()) return {.none = "the driver makes a green context, and may wait for the program there"};
  Choice choice;
  Confined found = choose(wanted, choice);
  if (found.none) return found;
  std::map<GroupRun, Part>& parts = choice.division->parts;
  if (const auto known = parts.find(choice.groups); known != parts.end()) {
    Part& part = known->second;
    part.used = ++uses_;
    const auto stream = part.streams.find({wanted.lane, priority_of(wanted.like)});
    if (stream != part.streams.end()) {
      hold = part.hold;
      return {.stream = stream->second, .sms = found.sms, .pairs = found.pairs};
    }
  }
  if (choice.division->refusal.stands()) return {.none = choice.division->why};
  found.unmade = true;
  return found;
}

GreenContexts::Confined GreenContexts::make(const Wanted& wanted, Hold& hold) {
  {
    std::lock_guard lock(mutex_);
    Choice choice;
    if (const Confined none = choose(wanted, choice); none.none) return none;
    Division& division = *choice.division;
    division.why = make(choice, wanted);
    if (division.why)
      division.refusal.note(Refusal::Clock::now());
    else
      division.refusal.over();
  }
  const Confined made = find(wanted, hold);
  // If the driver makes no part of pairs now, it is a part of groups that is to be made.
  return made.unmade && wanted.part.pairs && !made.pairs ? make(wanted, hold) : made;
}

void GreenContexts::forget(const void* lane) {
  std::lock_guard lock(mutex_);
  const auto is_its = [&](const auto& entry) {
    if (entry.first.first != lane) return false;
    driver().cuStreamDestroy_v2(entry.second);
    return true;
  };
  for (Division* division : {&groups_, &pairs_})
    for (auto& [groups, part] : division->parts) std::erase_if(part.streams, is_its);
}

void GreenContexts::give_up() {
  std::lock_guard lock(mutex_);
  for (Division* division : {&groups_, &pairs_}) {
    for (auto& [groups, part] : division->parts) {
      for (const auto& [lane, stream] : part.streams) driver().cuStreamSynchronize(stream);
      destroy(part);
    }
    division->parts.clear();
  }
}

}  // namespace gpuslice
