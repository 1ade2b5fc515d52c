#include <array>
#include <memory>

#include "gpuctl/line/daemon.h"
#include "gpuctl/line/save_slices.h"
#include "gpuctl/line/settings.h"
#include "gpuctl/line/verb.h"
#include "gpuctl/views/slice_changes.h"

namespace gpuctl::cli {

Action declare_create_slice(Arguments& arguments) {
  struct Options {
    std::string name, config;
    bool persist = false, check = false;
    std::vector<std::string> values = std::vector<std::string>(setting_options().size());
  };
  auto options = std::make_shared<Options>();
  arguments.add("NAME", options->name, "Name of the slice; 'batch/train' lies inside 'batch'").required();
  std::vector<Argument> given;
  for (std::size_t i = 0; i < options->values.size(); ++i) {
    const SliceSetting& setting = *setting_options()[i];
    given.push_back(
        arguments.add("--" + std::string(setting.option), options->values[i], setting.help).value(setting.argument));
  }
  arguments.add_flag("--persist", options->persist, "Keep it for the next boot too, as gpuctl save does");
  arguments.add("--config", options->config, "Of --persist: the daemon's configuration, if not " GPUCTL_CONFIG_FILE)
      .value("FILE");
  arguments.add_flag("--check", options->check, kCheckHelp);
  arguments.footer(policy_help());

  return [options, given](Context& context) -> Outcome<int> {
    const Outcome<std::string> path = slice_path(options->name);
    if (!path) return path.error();
    ipc::SliceSettings settings;
    for (std::size_t i = 0; i < given.size(); ++i) {
      if (!given[i].given()) continue;
      const SliceSetting& setting = *setting_options()[i];
      const Outcome<void> applied =
          apply_setting(setting, options->values[i], "--" + std::string(setting.option), settings);
      if (!applied) return applied.error();
    }
    if (options->check && options->persist) return usage("create-slice: --check makes nothing; leave out --persist");
    if (options->persist)
      if (const auto read = reads_saved(context, options->config); !read) return read.error();
    boost::json::object parameters{{"path", *path}, {"settings", ipc::to_json(settings)}};
    if (options->check) parameters["check"] = true;
    const auto reply = change(context, "CreateSlice", std::move(parameters));
    if (!reply) return reply.error();
    note_links(settings, context.err);
    if (options->check && !context.json) return print_changes(context, *reply, true);
    if (options->persist) {
      const auto saved = save_slices(context, *path, options->config);
      if (!saved)
        return Failure{saved.error().exit_status, "the slice is made, but not kept: " + saved.error().message};
    }
    if (context.json) print_json(context, *reply);
    return kExitOk;
  };
}

}  // namespace gpuctl::cli
