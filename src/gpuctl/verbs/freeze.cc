// freeze and thaw: the setting `frozen`, as verbs.
#include <memory>

#include "gpuctl/line/daemon.h"
#include "gpuctl/line/settings.h"
#include "gpuctl/line/verb.h"

namespace gpuctl::cli {
namespace {

/// Takes the slice's name, and gives it the value that `frozen()` says.
template <class Frozen>
Action declare_frozen(Arguments& arguments, Frozen frozen) {
  auto name = std::make_shared<std::string>();
  arguments.add("NAME", *name, "The slice; what is below it is meant too, and '/' is all").required();

  return [name, frozen](Context& context) -> Outcome<int> {
    const Outcome<std::string> path = slice_path(*name);
    if (!path) return path.error();
    const ipc::SliceSettings settings{.frozen = std::string(frozen())};
    const auto reply = change(context, "SetSlice", {{"path", *path}, {"settings", ipc::to_json(settings)}});
    if (!reply) return reply.error();
    if (context.json) print_json(context, *reply);
    return kExitOk;
  };
}

}  // namespace

Action declare_freeze(Arguments& arguments) {
  auto swap = std::make_shared<bool>(false);
  arguments.add_flag("--swap", *swap, "Let their memory leave the GPU for the host, where the driver can, until then");
  return declare_frozen(arguments, [swap] { return kFrozen[*swap ? 2 : 1]; });
}

Action declare_thaw(Arguments& arguments) {
  return declare_frozen(arguments, [] { return kFrozen[0]; });
}

}  // namespace gpuctl::cli
