#include "gpuctl/profile/profile_table.h"

#include <algorithm>
#include <cstdio>

#include "base/plural.h"
#include "gpuctl/text/table.h"
#include "gpuctl/text/units.h"
#include "gpuctl/views/demangle.h"
#include "sched/predictor/left_out_error.h"

namespace gpuctl::cli {

namespace {

std::string percent(double part) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %%", 100 * part);
  return text;
}

/// "2: 0.25  8: 1.00", over the speed with the most SMs, which come last.
std::string speeds_text(const std::vector<ipc::ProfilePoint>& curve) {
  std::string text;
  for (const ipc::ProfilePoint& point : curve) {
    char speed[32];
    std::snprintf(speed, sizeof speed, "%.2f",
                  point.block_task_us > 0 ? curve.back().block_task_us / point.block_task_us : 0);
    text += (text.empty() ? "" : "  ") + std::to_string(point.sms) + ": " + speed;
  }
  return text.empty() ? "-" : text;
}

/// "20 us", or "20 us to 1.2 ms".
std::string range_text(const std::vector<ipc::ProfileInput>& inputs) {
  if (inputs.empty()) return "-";
  double least = inputs[0].alone_us, most = least;
  for (const ipc::ProfileInput& input : inputs)
    least = std::min(least, input.alone_us), most = std::max(most, input.alone_us);
  const std::string from = format_us(least), to = format_us(most);
  return from == to ? from : from + " to " + to;
}

}  // namespace

std::optional<double> error_of(const ipc::KernelProfile& kernel) {
  std::vector<sched::Sample> samples;
  for (const ipc::ProfileInput& input : kernel.inputs) samples.push_back(sched::sample_of(input));
  return sched::left_out_error(samples);
}

std::vector<std::string> profile_lines(const std::vector<ipc::KernelProfile>& kernels) {
  using enum Table::Align;
  Table table({{"KERNEL", left},
               {"LAUNCHES", right},
               {"INPUTS", right},
               {"ALONE", left},
               {"BLOCK-TASK", right},
               {"ERROR", right},
               {"SPEED BY SMS", left}});
  double errors = 0;
  std::size_t with_error = 0;
  std::vector<std::string> names;
  for (const ipc::KernelProfile& kernel : kernels) names.push_back(kernel.name);
  names = demangled(names);
  for (auto name = names.begin(); const ipc::KernelProfile& kernel : kernels) {
    std::int64_t launches = 0;
    for (const ipc::ProfileInput& input : kernel.inputs) launches += input.launches;
    const std::optional<double> error = error_of(kernel);
    if (error) errors += *error, ++with_error;
    table.add_row({fit(printable(*name++), 40), format_count(launches), std::to_string(kernel.inputs.size()),
                   range_text(kernel.inputs), kernel.block_task_us == 0 ? "-" : format_us(kernel.block_task_us),
                   error ? percent(*error) : "-", speeds_text(kernel.curve)});
  }
  std::vector<std::string> lines = table.lines();
  if (with_error > 0)
    lines.push_back("error of predicted durations, each input left out in turn: mean " +
                    percent(errors / static_cast<double>(with_error)) + " over " + plural(with_error, "kernel"));
  return lines;
}

}  // namespace gpuctl::cli
