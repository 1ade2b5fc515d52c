#include "gpuctld/ends/faults.h"

#include <cstdio>
#include <ctime>

#include "base/one_line.h"
#include "ipc/message.h"

namespace gpuctl::daemon {

namespace {

/// "2026-11-23T12:00:00.123456Z"
std::string instant(std::int64_t us) {
  const std::time_t seconds = us / 1'000'000;
  std::tm utc{};
  ::gmtime_r(&seconds, &utc);
  char date[64], fraction[16];
  std::strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", &utc);
  std::snprintf(fraction, sizeof fraction, ".%06dZ", static_cast<int>(us % 1'000'000));
  return std::string(date) + fraction;
}

std::string milliseconds(std::int64_t us) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3f ms", static_cast<double>(us) / 1000);
  return text;
}

std::string process(std::int32_t pid, const std::string& command) {
  return "process " + std::to_string(pid) + " (" + command + ")";
}

}  // namespace

std::string Faults::add(const Fault& fault) {
  ++by_slice_[fault.slice];
  ++total_;
  const std::string order = fault.shares_faults ? this->order(fault) : "others on the GPU go on";
  if (fault.of_process >= kFaultLinesPerProcess) return "";
  const std::string name = one_line(ipc::to_utf8(fault.name.substr(0, kMostFaultName)));
  return "fault at " + instant(fault.time_us) + " on GPU " + std::to_string(fault.device) + ": process " +
         std::to_string(fault.pid) + " (" + one_line(fault.command) + ", slice " + fault.slice +
         "): " + (name.empty() ? "an error without a name" : name) + " (" + std::to_string(fault.error) +
         "); its grant is free; it can use the GPU " + "again in a new context only; " + order +
         (fault.of_process + 1 == kFaultLinesPerProcess ? "; further faults of it are only counted" : "");
}

/// Says which process was first, or that this one was.
std::string Faults::order(const Fault& fault) {
  const auto found = first_.find(fault.device);
  if (found != first_.end() && found->second.pid != fault.pid) {
    First& first = found->second;
    const std::int64_t after = fault.time_us - first.time_us;
    if (after >= 0 && after < kFaultFollowsWithinUs)
      return "number " + std::to_string(++first.others + 1) + " on this GPU, " + milliseconds(after) + " after " +
             process(first.pid, one_line(first.command)) + ", whose fault probably reached it through MPS";
  }
  first_.insert_or_assign(fault.device, First{fault.pid, fault.command, fault.time_us, 0});
  return "the first on this GPU; through MPS the same error may reach others on it";
}

std::int64_t Faults::of(std::string_view slice) const {
  const auto found = by_slice_.find(slice);
  return found == by_slice_.end() ? 0 : found->second;
}

void Faults::keep(const std::function<bool(const std::string& slice)>& exists) {
  std::erase_if(by_slice_, [&](const auto& entry) { return !exists(entry.first); });
}

}  // namespace gpuctl::daemon
