#include "libgpuslice/streams/green.h"

#include <algorithm>
#include <utility>

#include "libgpuslice/driver/driver.h"
#include "libgpuslice/driver/pair_choice.h"
#include "libgpuslice/driver/pair_order.h"
#include "libgpuslice/process/debug.h"
#include "libgpuslice/process/stage.h"

namespace gpuslice {

namespace {

constexpr std::size_t kMostParts = 32;  // each takes a few megabytes

int priority_of(CUstream stream) {
  int priority = 0;
  driver().cuStreamGetPriority(stream, &priority);
  return priority;
}

}  // namespace

/// Splits the device into groups, or pairs, at the first call. There are none if that is not possible.
void GreenContexts::divide(Division& division, bool pairs) {
  if (std::exchange(division.divided, true)) return;
  if (pairs) divide(groups_, false);
  const Driver& d = driver();
  if (!d.cuCtxGetDevResource || !d.cuDevSmResourceSplitByCount || !d.cuDevResourceGenerateDesc || !d.cuGreenCtxCreate ||
      !d.cuGreenCtxStreamCreate)
    return;
  CUdevResource all{}, rest{};
  CUcontext current = nullptr;
  if (d.cuCtxGetCurrent(&current) != CUDA_SUCCESS ||
      d.cuCtxGetDevResource(current, &all, CU_DEV_RESOURCE_TYPE_SM) != CUDA_SUCCESS)
    return;
  const unsigned least = pairs ? kPairSms : group_sms(all.sm.smCount);
  const unsigned flags = pairs ? CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING : 0;
  unsigned count = std::max(all.sm.smCount / least, 1u);
  std::vector<CUdevResource>& groups = division.groups;
  groups.resize(count);
  if (d.cuDevSmResourceSplitByCount(groups.data(), &count, &all, &rest, flags, least) != CUDA_SUCCESS) count = 0;
  groups.resize(count);
  if (count > 0 && rest.type == CU_DEV_RESOURCE_TYPE_SM && rest.sm.smCount > 0) groups.push_back(rest);
  if (pairs && count > 0) {
    groups = in_order_of_groups(groups, groups_.groups);
    debug("the device has %u pairs of SMs%s", count, groups.empty() ? ", and it is not known where they lie" : "");
  }
  division.starts.assign(1, 0);
  for (const CUdevResource& group : groups) division.starts.push_back(division.starts.back() + group.sm.smCount);
}

/// Pairs, if wanted and the driver makes them, else groups.
GreenContexts::Division& GreenContexts::division(bool pairs) {
  if (pairs) divide(pairs_, true);
  if (pairs && !pairs_.groups.empty()) return pairs_;
  divide(groups_, false);
  return groups_;
}

GreenContexts::Part& GreenContexts::part(const Choice& choice) {
  Division& division = *choice.division;
  const auto known = division.parts.find(choice.groups);
  if (known != division.parts.end()) return known->second;
  const auto [begin, end] = choice.groups;
  Part part;
  CUdevResourceDesc description = nullptr;
  CUdevice device = 0;
  if (groups_.parts.size() + pairs_.parts.size() < kMostParts && driver().cuCtxGetDevice(&device) == CUDA_SUCCESS &&
      driver().cuDevResourceGenerateDesc(&description, division.groups.data() + begin,
                                         static_cast<unsigned>(end - begin)) == CUDA_SUCCESS) {
    const Stage stage("making a green context");
    const CUresult result = driver().cuGreenCtxCreate(&part.context, description, device, CU_GREEN_CTX_DEFAULT_STREAM);
    if (result != CUDA_SUCCESS) part.context = nullptr;
    debug("green context of SMs %u to %u%s: %d", division.starts[begin], division.starts[end],
          &division == &pairs_ ? ", in pairs" : "", result);
  }
  return division.parts.emplace(choice.groups, part).first->second;
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
  if (sms < wanted.least) return {.none = "those granted do not hold all the blocks that wait for each other"};
  return {.sms = sms, .pairs = &chosen == &pairs_};
}

GreenContexts::Confined GreenContexts::find(const Wanted& wanted) {
  constexpr const char* kRefused = "the driver made no green context, or no stream of it";
  std::lock_guard lock(mutex_);
  Choice choice;
  Confined found = choose(wanted, choice);
  if (found.none) return found;
  found.unmade = true;
  const std::map<GroupRun, Part>& parts = choice.division->parts;
  const auto known = parts.find(choice.groups);
  if (known == parts.end()) return found;
  if (!known->second.context) return {.none = kRefused};
  const auto stream = known->second.streams.find({wanted.lane, priority_of(wanted.like)});
  if (stream == known->second.streams.end()) return found;
  if (!stream->second) return {.none = kRefused};
  return {.stream = stream->second, .sms = found.sms, .pairs = found.pairs};
}

GreenContexts::Confined GreenContexts::make(const Wanted& wanted) {
  {
    std::lock_guard lock(mutex_);
    Choice choice;
    if (const Confined none = choose(wanted, choice); none.none) return none;
    Part& its = part(choice);
    if (!its.context && choice.division == &pairs_) {
      pairs_.groups.clear();
    } else if (its.context) {
      const Stage stage("making a stream of a green context");
      const int priority = priority_of(wanted.like);
      CUstream& stream = its.streams[{wanted.lane, priority}];
      if (!stream &&
          driver().cuGreenCtxStreamCreate(&stream, its.context, CU_STREAM_NON_BLOCKING, priority) != CUDA_SUCCESS)
        stream = nullptr;
    }
  }
  const Confined made = find(wanted);
  // If the driver makes no parts of pairs, it is a part of groups that is to be made.
  return made.unmade && wanted.part.pairs && !made.pairs ? make(wanted) : made;
}

void GreenContexts::forget(const void* lane) {
  std::lock_guard lock(mutex_);
  const auto is_its = [&](const auto& entry) {
    if (entry.first.first != lane) return false;
    if (entry.second) driver().cuStreamDestroy_v2(entry.second);
    return true;
  };
  for (Division* division : {&groups_, &pairs_})
    for (auto& [groups, part] : division->parts) std::erase_if(part.streams, is_its);
}

void GreenContexts::give_up() {
  std::lock_guard lock(mutex_);
  if (!driver().cuGreenCtxDestroy) return;
  for (Division* division : {&groups_, &pairs_}) {
    for (auto& [groups, part] : division->parts) {
      for (const auto& [lane, stream] : part.streams) {
        if (!stream) continue;
        driver().cuStreamSynchronize(stream);
        driver().cuStreamDestroy_v2(stream);
      }
      if (part.context) driver().cuGreenCtxDestroy(part.context);
    }
    division->parts.clear();
  }
}

}  // namespace gpuslice
