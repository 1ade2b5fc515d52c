#include "gpuctl/views/fairness_lines.h"

#include <algorithm>
#include <cstdio>

#include "gpuctl/text/table.h"
#include "gpuctl/text/units.h"

namespace gpuctl::cli {
namespace {

std::string counted(std::int64_t count, const std::string& word) {
  return format_count(count) + ' ' + word + (count == 1 ? "" : "s");
}

}  // namespace

std::string format_slowdown(double ntt) {
  if (ntt >= 1000) return format_rate(ntt);
  char text[32];
  std::snprintf(text, sizeof text, ntt < 100 ? "%.2f" : "%.0f", ntt);
  return text;
}

std::vector<std::string> fairness_lines(const ipc::Fairness& fairness) {
  std::vector<std::string> lines;
  const auto line = [&](const std::string& name, const std::string& value) {
    lines.push_back(name + std::string(14 - name.size(), ' ') + value);
  };
  line("slice", printable(fairness.slice));
  line("window", "the last " + std::to_string(fairness.seconds) + " s");
  if (fairness.programs == 0 && fairness.launches == 0) {
    lines.emplace_back("no launch ended that its program reported; programs report them under a policy for jobs");
    return lines;
  }
  if (fairness.programs > 0) {
    line("applications", counted(fairness.bursts, "burst") + " of " + counted(fairness.programs, "program"));
    line("ANTT", format_slowdown(fairness.antt));
    line("DNTT", format_slowdown(fairness.dntt));
    line("STP", format_slowdown(fairness.stp));
    line("greatest NTT", format_slowdown(fairness.worst));
  } else {
    line("applications", "none whose launches were all reported");
  }
  if (fairness.launches > 0)
    line("launches", format_count(fairness.launches) + ": ANTT " + format_slowdown(fairness.launch_antt) + ", DNTT " +
                         format_slowdown(fairness.launch_dntt) + ", greatest NTT " +
                         format_slowdown(fairness.launch_worst));
  return lines;
}

const ipc::Fairness* fairness_of(const std::vector<ipc::Fairness>& fairness, const std::string& slice) {
  const auto found = std::ranges::find(fairness, slice, &ipc::Fairness::slice);
  return found == fairness.end() ? nullptr : &*found;
}

}  // namespace gpuctl::cli
