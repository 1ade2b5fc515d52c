#include <algorithm>
#include <memory>

#include "gpuctl/line/daemon.h"
#include "gpuctl/line/settings.h"
#include "gpuctl/line/verb.h"

namespace gpuctl::cli {
namespace {

/// How many programs directly in the slice may have more SMs than those to which MPS keeps them until they end; 0 if
/// the daemon does not say.
std::size_t kept_to_fewer(const Context& context, const std::string& path) {
  const auto reply = ask(context, "GetSlice", {{"path", path}});
  if (!reply) return 0;
  const Outcome<SliceWithClients> found = decode_slice(*reply);
  if (!found) return 0;
  const std::optional<std::int64_t> max = found->slice.effective_max ? found->slice.effective_max : found->slice.max;
  // MPS divides a GPU in pairs of SMs.
  const auto fewer = [&](const ipc::ClientUsage& usage) {
    return usage.mps_sms > 0 && (!max || *max > usage.mps_sms + 1);
  };
  return static_cast<std::size_t>(std::ranges::count_if(
      found->clients, [&](const ipc::Client& client) { return std::ranges::any_of(client.usage, fewer); }));
}

}  // namespace

Action declare_set(Arguments& arguments) {
  struct Options {
    std::string name;
    std::vector<std::string> assignments;
  };
  auto options = std::make_shared<Options>();
  arguments.add("NAME", options->name, "The slice; '/' is the root").required();
  arguments.add("KEY=VALUE", options->assignments, "What to change, all or nothing").required();
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
    const auto reply = ask(context, "SetSlice", {{"path", *path}, {"settings", ipc::to_json(settings)}});
    if (!reply) return reply.error();
    if (context.json) {
      print_json(context, *reply);
    } else if (settings.max || settings.max_unlimited) {
      if (const std::size_t programs = kept_to_fewer(context, *path); programs > 0)
        context.out << "note: MPS keeps " << programs << (programs == 1 ? " program" : " programs") << " in " << *path
                    << " to the earlier max until started again (limits_by_mps in gpuctl.toml(5))\n";
    }
    return kExitOk;
  };
}

}  // namespace gpuctl::cli
