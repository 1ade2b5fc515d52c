#include "gpuctl/views/kernel_lines.h"

#include <algorithm>

#include "base/plural.h"
#include "gpuctl/text/units.h"
#include "gpuctl/views/demangle.h"

namespace gpuctl::cli {
namespace {

std::string registers_text(const ipc::Kernel& k) {
  if (k.registers == 0 && k.registers_original == 0) return "-";
  if (k.form == "opaque" || k.registers == 0) return std::to_string(std::max(k.registers, k.registers_original));
  return std::to_string(k.registers_original) + " -> " + std::to_string(k.registers);
}

/// What the mode means, with its numbers.
std::vector<std::string> how_kernels_run(const ipc::ClientUsage& usage) {
  const std::string common = plural(usage.common_sms, "SM") + " in common with other programs";
  const std::string granted = plural(usage.granted, "SM");
  if (usage.mode == "free") return {"kernels run as the program launches them"};
  if (usage.mode == "part") return {"kernels keep their original form, on " + granted + " of its own"};
  if (usage.mode == "common") return {"kernels keep their original form, on " + common};
  if (usage.mode == "turns") return {"programs take turns, and this one has " + granted};
  return {"rewritten kernels give SMs back between two blocks",
          "the others run on " + (usage.mode == "lent" ? common : granted)};
}

}  // namespace

std::string mode_text(const ipc::Client& client, const ipc::ClientUsage& usage) {
  return printable(usage.mode) + (client.isolated.value_or(false) ? ", isolated" : "");
}

std::vector<std::string> in_force_lines(const ipc::Client& client, const std::string& ruling) {
  std::vector<std::string> lines;
  for (const ipc::ClientUsage& u : client.usage) {
    std::string line = "in force on GPU " + std::to_string(u.device) + ": " + printable(u.in_force);
    if (u.in_force == "jobs" && !ruling.empty()) line += " (" + ruling + ")";
    lines.push_back(line + "; mode " + printable(u.mode));
    const auto more = [&](const std::string& text) { lines.push_back("  " + text); };
    for (const std::string& text : how_kernels_run(u)) more(text);
    if (u.priorities > 1)
      more("priority " + std::to_string(u.priority_rank + 1) + " of " + std::to_string(u.priorities) + " from below");
    if (u.mps_sms > 0) more("MPS keeps it to " + plural(u.mps_sms, "SM") + " until it starts again");
    if (u.sms_told > 0) more("told of " + plural(u.sms_told, "SM"));
  }
  if (client.isolated.value_or(false)) {
    lines.push_back("isolated: it shares no context of the GPU with programs of other slices");
    lines.push_back("  the GPU switches between them by turns");
  }
  return lines;
}

std::vector<std::string> turn_lines(const ipc::Client& client) {
  std::vector<std::string> lines;
  for (const ipc::ClientUsage& u : client.usage) {
    const std::string gpu = "turns on GPU " + std::to_string(u.device) + ": ";
    if (u.time_slice == "in force") {
      lines.push_back(gpu + std::to_string(u.time_slice_us) + " us, then others' (time slice of its " +
                      plural(u.channel_groups, "channel group") + ")");
      lines.push_back("  the hardware stops any kernel for that");
    } else if (u.time_slice == "refused") {
      lines.push_back(gpu + "as long as the driver has it, which refused to set time slices");
    } else if (u.time_slice == "no channel groups") {
      lines.push_back(gpu + "as long as the driver has it, whose channel groups were not seen");
    }
  }
  return lines;
}

Table kernel_table(std::vector<ipc::Kernel> kernels) {
  std::stable_sort(kernels.begin(), kernels.end(),
                   [](const ipc::Kernel& a, const ipc::Kernel& b) { return a.launches > b.launches; });
  using enum Table::Align;
  Table table({{"FORM", left},
               {"LAUNCHES", right},
               {"REGISTERS", right},
               {"WORKERS/SM", right},
               {"BLOCK-TASK", right},
               {"KERNEL", left},
               {"REASON", left}});
  std::vector<std::string> names;
  for (const ipc::Kernel& k : kernels) names.push_back(k.name);
  names = demangled(names);
  for (auto name = names.begin(); const ipc::Kernel& k : kernels)
    table.add_row({printable(k.form), format_count(k.launches), registers_text(k),
                   k.per_sm == 0 ? "-" : std::to_string(k.per_sm),
                   k.block_task_ns == 0 ? "-" : format_us(static_cast<double>(k.block_task_ns) / 1000),
                   fit(printable(*name++), 60), printable(k.reason)});
  return table;
}

}  // namespace gpuctl::cli
