#include "ptx/pass/append_launch_args.h"

namespace gpuctl::ptx::pass {

Refused append_launch_args(Kernel& kernel) {
  Variable args;
  args.specifiers = {".param", ".align", std::to_string(alignof(LaunchArgs)), ".b8"};
  Declarator name;
  name.name = kernel.args_name();
  name.dims = {sizeof(LaunchArgs)};
  args.names.push_back(std::move(name));
  decode_specifiers(args);
  kernel.entry.name += kPersistentSuffix;
  kernel.entry.has_params = true;
  kernel.entry.params.push_back(std::move(args));
  return {};
}

}  // namespace gpuctl::ptx::pass
