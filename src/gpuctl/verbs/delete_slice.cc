#include <memory>

#include "gpuctl/line/daemon.h"
#include "gpuctl/line/settings.h"
#include "gpuctl/line/verb.h"
#include "gpuctl/views/slice_changes.h"

namespace gpuctl::cli {

Action declare_delete_slice(Arguments& arguments) {
  struct Options {
    std::string name;
    bool recursive = false, check = false;
  };
  auto options = std::make_shared<Options>();
  arguments.add("NAME", options->name, "The slice; it must have no programs, and no slices below it but with -r")
      .required();
  arguments.add_flag("-r,--recursive", options->recursive,
                     "With all slices below it, all or nothing; none of them may have programs");
  arguments.add_flag("--check", options->check, kCheckHelp);

  return [options](Context& context) -> Outcome<int> {
    const Outcome<std::string> path = slice_path(options->name);
    if (!path) return path.error();
    boost::json::object parameters{{"path", *path}};
    if (options->recursive) parameters["recursive"] = true;
    if (options->check) parameters["check"] = true;
    const auto reply = change(context, "DeleteSlice", std::move(parameters));
    if (!reply) return reply.error();
    if (context.json)
      print_json(context, *reply);
    else if (options->check)
      return print_changes(context, *reply, true);
    return kExitOk;
  };
}

}  // namespace gpuctl::cli
