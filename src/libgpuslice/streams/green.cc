#include "libgpuslice/streams/green.h"

#include <algorithm>

#include "libgpuslice/driver/driver.h"
#include "libgpuslice/process/debug.h"
#include "libgpuslice/process/stage.h"

namespace gpuslice {

namespace {

constexpr unsigned kMostGroups = 64;
constexpr std::size_t kMostParts = 32;  // each takes a few megabytes

int priority_of(CUstream stream) {
  int priority = 0;
  driver().cuStreamGetPriority(stream, &priority);
  return priority;
}

}  // namespace

/// Splits the device into groups, at the first call. Returns false if that is not possible.
bool GreenContexts::divide() {
  if (divided_) return !groups_.empty();
  divided_ = true;
  const Driver& d = driver();
  if (!d.cuCtxGetDevResource || !d.cuDevSmResourceSplitByCount || !d.cuDevResourceGenerateDesc || !d.cuGreenCtxCreate ||
      !d.cuGreenCtxStreamCreate)
    return false;
  CUdevResource all{}, rest{};
  CUcontext current = nullptr;
  if (d.cuCtxGetCurrent(&current) != CUDA_SUCCESS ||
      d.cuCtxGetDevResource(current, &all, CU_DEV_RESOURCE_TYPE_SM) != CUDA_SUCCESS)
    return false;
  const unsigned least = group_sms(all.sm.smCount);
  unsigned count = kMostGroups;
  groups_.resize(count);
  if (d.cuDevSmResourceSplitByCount(groups_.data(), &count, &all, &rest, 0, least) != CUDA_SUCCESS) count = 0;
  groups_.resize(count);
  if (count > 0 && rest.type == CU_DEV_RESOURCE_TYPE_SM && rest.sm.smCount > 0) groups_.push_back(rest);
  starts_.assign(1, 0);
  for (const CUdevResource& group : groups_) starts_.push_back(starts_.back() + group.sm.smCount);
  return !groups_.empty();
}

GreenContexts::Part& GreenContexts::part(GroupRun groups) {
  const auto known = parts_.find(groups);
  if (known != parts_.end()) return known->second;
  const auto [begin, end] = groups;
  Part part;
  CUdevResourceDesc description = nullptr;
  CUdevice device = 0;
  if (parts_.size() < kMostParts && driver().cuCtxGetDevice(&device) == CUDA_SUCCESS &&
      driver().cuDevResourceGenerateDesc(&description, groups_.data() + begin, static_cast<unsigned>(end - begin)) ==
          CUDA_SUCCESS) {
    const Stage stage("making a green context");
    const CUresult result = driver().cuGreenCtxCreate(&part.context, description, device, CU_GREEN_CTX_DEFAULT_STREAM);
    if (result != CUDA_SUCCESS) part.context = nullptr;
    debug("green context of SMs %u to %u: %d", starts_[begin], starts_[end], result);
  }
  return parts_.emplace(groups, part).first->second;
}

GreenContexts::Confined GreenContexts::choose(const Wanted& wanted, GroupRun& groups) {
  if (!divide()) return {.none = "the driver has no green contexts"};
  // Under a percentage of MPS the driver may divide fewer SMs than the daemon counts places on.
  const std::uint32_t first = first_within(wanted.first, wanted.count, starts_.back());
  groups = choose_groups(starts_, first, wanted.count);
  const auto [begin, end] = groups;
  if (begin == end) return {.none = "no whole group of SMs is granted"};
  const std::uint32_t sms = starts_[end] - starts_[begin];
  if (sms < wanted.least) return {.none = "those granted do not hold all the blocks that wait for each other"};
  return {.sms = sms};
}

GreenContexts::Confined GreenContexts::find(const Wanted& wanted) {
  constexpr const char* kRefused = "the driver made no green context, or no stream of it";
  std::lock_guard lock(mutex_);
  GroupRun groups;
  Confined found = choose(wanted, groups);
  if (found.none) return found;
  found.unmade = true;
  const auto known = parts_.find(groups);
  if (known == parts_.end()) return found;
  if (!known->second.context) return {.none = kRefused};
  const auto stream = known->second.streams.find({wanted.lane, priority_of(wanted.like)});
  if (stream == known->second.streams.end()) return found;
  if (!stream->second) return {.none = kRefused};
  return {.stream = stream->second, .sms = found.sms};
}

GreenContexts::Confined GreenContexts::make(const Wanted& wanted) {
  {
    std::lock_guard lock(mutex_);
    GroupRun groups;
    if (const Confined none = choose(wanted, groups); none.none) return none;
    Part& its = part(groups);
    if (its.context) {
      const Stage stage("making a stream of a green context");
      const int priority = priority_of(wanted.like);
      CUstream& stream = its.streams[{wanted.lane, priority}];
      if (!stream &&
          driver().cuGreenCtxStreamCreate(&stream, its.context, CU_STREAM_NON_BLOCKING, priority) != CUDA_SUCCESS)
        stream = nullptr;
    }
  }
  return find(wanted);
}

void GreenContexts::forget(const void* lane) {
  std::lock_guard lock(mutex_);
  for (auto& [groups, part] : parts_) {
    std::erase_if(part.streams, [&](const auto& entry) {
      if (entry.first.first != lane) return false;
      if (entry.second) driver().cuStreamDestroy_v2(entry.second);
      return true;
    });
  }
}

void GreenContexts::give_up() {
  std::lock_guard lock(mutex_);
  if (!driver().cuGreenCtxDestroy) return;
  for (auto& [groups, part] : parts_) {
    for (const auto& [lane, stream] : part.streams) {
      if (!stream) continue;
      driver().cuStreamSynchronize(stream);
      driver().cuStreamDestroy_v2(stream);
    }
    if (part.context) driver().cuGreenCtxDestroy(part.context);
  }
  parts_.clear();
}

}  // namespace gpuslice
