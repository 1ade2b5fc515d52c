#include <boost/json/value_from.hpp>
#include <memory>
#include <ostream>

#include "gpuctl/line/daemon.h"
#include "gpuctl/line/save_slices.h"
#include "gpuctl/line/settings.h"
#include "gpuctl/line/verb.h"

namespace gpuctl::cli {

Action declare_save(Arguments& arguments) {
  struct Options {
    std::string name, config;
  };
  auto options = std::make_shared<Options>();
  Argument name =
      arguments.add("NAME", options->name, "The slice, saved with those above it; without it all slices are");
  arguments.add("--config", options->config, "The daemon's configuration, if it is not " GPUCTL_CONFIG_FILE)
      .value("FILE");

  return [options, name](Context& context) -> Outcome<int> {
    std::string path;
    if (name.given()) {
      const Outcome<std::string> given = slice_path(options->name);
      if (!given) return given.error();
      path = *given;
    }
    const auto saved = save_slices(context, path, options->config);
    if (!saved) return saved.error();
    if (context.json) {
      print_json(context, {{"written", boost::json::value_from(saved->written)},
                           {"removed", boost::json::value_from(saved->removed)}});
      return kExitOk;
    }
    for (const std::string& file : saved->written) context.out << "written: " << file << '\n';
    for (const std::string& file : saved->removed) context.out << "removed: " << file << '\n';
    return kExitOk;
  };
}

}  // namespace gpuctl::cli
