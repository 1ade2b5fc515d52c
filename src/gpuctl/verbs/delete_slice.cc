#include <memory>

#include "gpuctl/line/daemon.h"
#include "gpuctl/line/settings.h"
#include "gpuctl/line/verb.h"

namespace gpuctl::cli {

Action declare_delete_slice(Arguments& arguments) {
  auto name = std::make_shared<std::string>();
  arguments.add("NAME", *name, "The slice; it must have no programs and no slices below it").required();

  return [name](Context& context) -> Outcome<int> {
    const Outcome<std::string> path = slice_path(*name);
    if (!path) return path.error();
    const auto reply = change(context, "DeleteSlice", {{"path", *path}});
    if (!reply) return reply.error();
    if (context.json) print_json(context, *reply);
    return kExitOk;
  };
}

}  // namespace gpuctl::cli
