#include <array>
#include <memory>

#include "gpuctl/line/daemon.h"
#include "gpuctl/line/settings.h"
#include "gpuctl/line/verb.h"

namespace gpuctl::cli {

Action declare_create_slice(CLI::App& app) {
  struct Options {
    std::string name;
    std::vector<std::string> values = std::vector<std::string>(setting_keys().size());
  };
  auto options = std::make_shared<Options>();
  app.add_option("NAME", options->name, "Name of the slice; 'batch/train' lies inside 'batch'")->required();
  std::vector<CLI::Option*> given;
  for (std::size_t i = 0; i < setting_keys().size(); ++i) {
    const SettingKey& key = setting_keys()[i];
    given.push_back(
        app.add_option("--" + std::string(key.name), options->values[i], key.help)->type_name(key.argument));
  }
  app.footer(policy_help());

  return [options, given](Context& context) -> Outcome<int> {
    const Outcome<std::string> path = slice_path(options->name);
    if (!path) return path.error();
    ipc::SliceSettings settings;
    for (std::size_t i = 0; i < given.size(); ++i) {
      if (given[i]->count() == 0) continue;
      const SettingKey& key = setting_keys()[i];
      const Outcome<void> applied = apply_setting(key.name, options->values[i], "--" + std::string(key.name), settings);
      if (!applied) return applied.error();
    }
    const auto reply = ask(context, "CreateSlice", {{"path", *path}, {"settings", to_json(settings)}});
    if (!reply) return reply.error();
    if (context.json) print_json(context, *reply);
    return kExitOk;
  };
}

}  // namespace gpuctl::cli
