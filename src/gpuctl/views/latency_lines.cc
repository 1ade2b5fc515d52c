#include "gpuctl/views/latency_lines.h"

#include <algorithm>

#include "base/latency_buckets.h"
#include "gpuctl/text/table.h"
#include "gpuctl/text/units.h"

namespace gpuctl::cli {

namespace {

/// "> 128 s" for what is longer than can be counted.
std::string text_of(double us) {
  constexpr double kLongestUs = static_cast<double>(kLongestLatency) / 1e3;
  if (us < kLongestUs) return format_us(us);
  return "> " + std::to_string(static_cast<std::int64_t>(kLongestUs / 1e6)) + " s";
}

}  // namespace

const ipc::Latency* lately(const std::vector<ipc::Latency>& latency) {
  const auto found = std::ranges::find_if(latency, [](const ipc::Latency& one) { return one.seconds != 0; });
  return found == latency.end() ? nullptr : &*found;
}

std::string latency_text(const std::vector<ipc::Latency>& latency, double ipc::Latency::*percentile) {
  const ipc::Latency* of = lately(latency);
  return of == nullptr ? "-" : text_of(of->*percentile);
}

std::vector<std::string> latency_lines(const std::vector<ipc::Latency>& latency) {
  std::vector<std::string> lines;
  for (auto next = latency.rbegin(); next != latency.rend(); ++next) {
    const ipc::Latency& one = *next;
    lines.push_back(format_count(one.count) + " " + printable(one.of) +
                    (one.seconds == 0 ? "" : " in the last " + format_duration_s(one.seconds)) + ": p50 " +
                    text_of(one.p50_us) + ", p99 " + text_of(one.p99_us) + ", p99.9 " + text_of(one.p999_us));
  }
  return lines;
}

std::vector<std::string> latency_lines(const ipc::Client& client) {
  std::vector<std::string> lines;
  for (const ipc::ClientUsage& usage : client.usage) {
    const std::string gpu = "GPU " + std::to_string(usage.device) + ": ";
    for (const std::string& line : latency_lines(usage.latency)) lines.push_back(gpu + line);
    if (usage.latency.empty() && usage.launches > 0)
      lines.push_back(gpu + "no latency: the program has not waited for all that it launched");
  }
  return lines;
}

}  // namespace gpuctl::cli
