#include <limits>
#include <memory>

#include "gpuctl/line/daemon.h"
#include "gpuctl/line/settings.h"
#include "gpuctl/line/verb.h"
#include "gpuctl/text/units.h"

namespace gpuctl::cli {

Action declare_move(Arguments& arguments) {
  struct Options {
    std::string pid, slice;
  };
  auto options = std::make_shared<Options>();
  arguments.add("PID", options->pid, "The program").required();
  arguments.add("SLICE", options->slice, "The slice in which it goes on").required();

  return [options](Context& context) -> Outcome<int> {
    const auto pid = parse_integer(options->pid);
    if (!pid || *pid <= 0 || *pid > std::numeric_limits<std::int32_t>::max())
      return usage("move: '" + options->pid + "' is not a process id");
    const Outcome<std::string> path = slice_path(options->slice);
    if (!path) return path.error();
    const auto reply = change(context, "Move", {{"pid", *pid}, {"slice", *path}});
    if (!reply) return reply.error();
    if (context.json) print_json(context, *reply);
    return kExitOk;
  };
}

}  // namespace gpuctl::cli
