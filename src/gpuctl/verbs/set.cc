#include <algorithm>
#include <memory>

#include "gpuctl/line/daemon.h"
#include "gpuctl/line/settings.h"
#include "gpuctl/line/verb.h"
#include "gpuctl/views/slice_changes.h"

namespace gpuctl::cli {

Action declare_set(Arguments& arguments) {
  struct Options {
    std::string name;
    std::vector<std::string> assignments;
    bool check = false;
  };
  auto options = std::make_shared<Options>();
  arguments.add("NAME", options->name, "The slice; '/' is the root").required();
  arguments.add("SETTING", options->assignments, "KEY=VALUE: what to change, all or nothing").required();
  arguments.add_flag("--check", options->check, kCheckHelp);
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
    boost::json::object parameters{{"path", *path}, {"settings", ipc::to_json(settings)}};
    if (options->check) parameters["check"] = true;
    const auto reply = change(context, "SetSlice", std::move(parameters));
    if (!reply) return reply.error();
    if (context.json)
      print_json(context, *reply);
    else if (options->check)
      return print_changes(context, *reply, true);
    return kExitOk;
  };
}

}  // namespace gpuctl::cli
