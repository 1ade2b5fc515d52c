#include <algorithm>
#include <memory>
#include <span>

#include "gpuctl/line/daemon.h"
#include "gpuctl/line/settings.h"
#include "gpuctl/line/verb.h"
#include "gpuctl/views/slice_changes.h"

namespace gpuctl::cli {
namespace {

bool is_assignment(const std::string& word) {
  return word.find('=') != word.npos;
}

}  // namespace

Action declare_set(Arguments& arguments) {
  struct Options {
    std::string name;
    std::vector<std::string> rest;  ///< more slices, then assignments
    bool check = false;
  };
  auto options = std::make_shared<Options>();
  arguments.add("NAME", options->name, "The slice; '/' is the root").required();
  arguments.add("SETTING", options->rest, "More slices, if any; then KEY=VALUE: what to change, all or nothing")
      .required();
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
    auto first = std::ranges::find_if(options->rest, is_assignment);
    if (first == options->rest.end()) --first;  // it is said to be none
    boost::json::array also;
    for (const std::string& name : std::span(options->rest.begin(), first)) {
      const Outcome<std::string> other = slice_path(name);
      if (!other) return other.error();
      also.emplace_back(*other);
    }
    ipc::SliceSettings settings;
    for (const std::string& assignment : std::span(first, options->rest.end()))
      if (const Outcome<void> applied = apply_assignment(assignment, settings); !applied) return applied.error();
    boost::json::object parameters{{"path", *path}, {"settings", ipc::to_json(settings)}};
    if (!also.empty()) parameters["also"] = std::move(also);
    if (options->check) parameters["check"] = true;
    const auto reply = change(context, "SetSlice", std::move(parameters));
    if (!reply) return reply.error();
    note_links(settings, context.err);
    if (context.json)
      print_json(context, *reply);
    else if (options->check)
      return print_changes(context, *reply, true);
    return kExitOk;
  };
}

}  // namespace gpuctl::cli
