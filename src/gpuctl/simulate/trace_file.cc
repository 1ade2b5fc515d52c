#include "gpuctl/simulate/trace_file.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <utility>

namespace gpuctl::cli {

namespace {

/// A TOML basic string.
std::string toml_string(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (byte < 0x20 || byte == 0x7f) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", byte);
      result += escape;
    } else {
      result += c;
    }
  }
  return result + '"';
}

std::string fixed(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.6f", value);
  return text;
}

double mean_eviction_us(const std::vector<ipc::Launch>& launches) {
  double sum = 0, count = 0;
  for (const ipc::Launch& launch : launches) {
    sum += launch.evict_us * static_cast<double>(launch.evictions);
    count += static_cast<double>(launch.evictions);
  }
  return count > 0 ? sum / count : 0;
}

}  // namespace

std::string to_workload(const std::vector<ipc::Launch>& launches, std::size_t devices, std::int64_t sms) {
  // A launch that waited behind another one of its program arrived when that one was over.
  std::vector<std::pair<std::int64_t, const ipc::Launch*>> starts;
  std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> free_at;
  std::vector<const ipc::Launch*> in_order;
  for (const ipc::Launch& launch : launches) in_order.push_back(&launch);
  std::stable_sort(in_order.begin(), in_order.end(),
                   [](const auto* a, const auto* b) { return a->done_ns < b->done_ns; });
  for (const ipc::Launch* launch : in_order) {
    std::int64_t& free = free_at[{launch->pid, launch->device}];
    starts.emplace_back(std::max(launch->issued_ns, free), launch);
    free = launch->done_ns;
  }
  std::stable_sort(starts.begin(), starts.end(), [](const auto& a, const auto& b) { return a.first < b.first; });

  std::string text = "title = \"recorded: " + std::to_string(launches.size()) +
                     " launches\"\n\n[device]\ncount = " + std::to_string(devices) +
                     "\ncapsm = " + std::to_string(sms) + "\npreempt_us = " + fixed(mean_eviction_us(launches)) + "\n";
  for (const auto& [start, launch] : starts) {
    text += "\n[[application]]\nname = " + toml_string(launch->kernel.empty() ? "unnamed" : launch->kernel) +
            "\nstart_ms = " + fixed(static_cast<double>(start - starts.front().first) / 1e6) +
            "\nalone_ms = " + fixed(std::max(launch->alone_us, 1e-3) / 1e3) +
            "\ntask_us = " + fixed(std::min(launch->block_task_us, launch->alone_us)) +
            "\ncapsm = " + std::to_string(std::clamp<std::int64_t>(launch->capsm, 1, sms)) +
            "\npriority = " + std::to_string(launch->priority) + "\nweight = " + std::to_string(launch->weight) + "\n";
    if (devices > 1) text += "device = " + std::to_string(launch->device) + "\n";
  }
  return text;
}

}  // namespace gpuctl::cli
