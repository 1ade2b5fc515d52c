#include <algorithm>
#include <map>
#include <memory>

#include "gpuctl/line/daemon.h"
#include "gpuctl/line/settings.h"
#include "gpuctl/line/verb.h"
#include "sched/effective/kept_by_mps.h"
#include "sched/slices.h"

namespace gpuctl::cli {
namespace {

/// How many programs in and below the slice may have more SMs than those to which MPS keeps them until they end; 0 if
/// the daemon does not say.
std::size_t kept_to_fewer(const Context& context, const std::string& path) {
  const auto slices = ask(context, "ListSlices"), clients = ask(context, "ListClients");
  if (!slices || !clients) return 0;
  std::map<std::string, sched::CapSM> most;
  const auto read_slices = [&](ipc::Fields& fields) {
    for (const ipc::Slice& slice : ipc::read_list<ipc::Slice>(fields, "slices")) {
      const auto max = slice.effective_max ? slice.effective_max : slice.max;
      most[slice.path] = max ? sched::CapSM{static_cast<std::uint32_t>(*max)} : sched::kUnlimitedCapSM;
    }
    return true;
  };
  const auto count = [&](ipc::Fields& fields) {
    std::size_t programs = 0;
    for (const ipc::Client& client : ipc::read_list<ipc::Client>(fields, "clients")) {
      const auto fewer = [&](const ipc::ClientUsage& usage) {
        return usage.mps_sms > 0 &&
               sched::kept_to_fewer(sched::CapSM{static_cast<std::uint32_t>(usage.mps_sms)}, most[client.slice]);
      };
      programs += sched::in_or_below(client.slice, path) && std::ranges::any_of(client.usage, fewer);
    }
    return programs;
  };
  if (!decode_reply(*slices, read_slices)) return 0;
  const Outcome<std::size_t> programs = decode_reply(*clients, count);
  return programs ? *programs : 0;
}

}  // namespace

Action declare_set(Arguments& arguments) {
  struct Options {
    std::string name;
    std::vector<std::string> assignments;
  };
  auto options = std::make_shared<Options>();
  arguments.add("NAME", options->name, "The slice; '/' is the root").required();
  arguments.add("SETTING", options->assignments, "KEY=VALUE: what to change, all or nothing").required();
  std::string footer = "Keys:";
  for (const SliceSetting* setting : setting_options()) {
    std::string line = "  " + std::string(setting->option) + '=' + setting->argument;
    line.resize(std::max<std::size_t>(line.size() + 2, 34), ' ');
    footer += '\n' + line + setting->help;
  }
  arguments.footer(footer + "\n\n" + policy_help());

  return [options](Context& context) -> Outcome<int> {
    const Outcome<std::string> path = slice_path(options->name);
    if (!path) return path.error();
    ipc::SliceSettings settings;
    for (const std::string& assignment : options->assignments)
      if (const Outcome<void> applied = apply_assignment(assignment, settings); !applied) return applied.error();
    const auto reply = change(context, "SetSlice", {{"path", *path}, {"settings", ipc::to_json(settings)}});
    if (!reply) return reply.error();
    if (context.json) {
      print_json(context, *reply);
    } else if (settings.max || settings.max_unlimited) {
      if (const std::size_t programs = kept_to_fewer(context, *path); programs > 0)
        context.out << "note: " << sched::kept_to_fewer_line(programs, *path) << '\n';
    }
    return kExitOk;
  };
}

}  // namespace gpuctl::cli
