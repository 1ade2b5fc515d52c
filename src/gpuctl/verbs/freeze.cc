// freeze and thaw: the setting `frozen`, as verbs.
#include <memory>

#include "gpuctl/line/daemon.h"
#include "gpuctl/line/settings.h"
#include "gpuctl/line/verb.h"

namespace gpuctl::cli {
namespace {

Action declare_frozen(Arguments& arguments, std::string_view value) {
  auto name = std::make_shared<std::string>();
  arguments.add("NAME", *name, "The slice; what is below it is meant too, and '/' is all").required();

  return [name, value](Context& context) -> Outcome<int> {
    const Outcome<std::string> path = slice_path(*name);
    if (!path) return path.error();
    const ipc::SliceSettings settings{.frozen = std::string(value)};
    const auto reply = change(context, "SetSlice", {{"path", *path}, {"settings", ipc::to_json(settings)}});
    if (!reply) return reply.error();
    if (context.json) print_json(context, *reply);
    return kExitOk;
  };
}

}  // namespace

Action declare_freeze(Arguments& arguments) {
  return declare_frozen(arguments, kNoYes.back());
}

Action declare_thaw(Arguments& arguments) {
  return declare_frozen(arguments, kNoYes.front());
}

}  // namespace gpuctl::cli
