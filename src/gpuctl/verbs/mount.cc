#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <string>

#include "gpuctl/line/verb.h"

namespace gpuctl::cli {

/// Becomes gpuctl-mount, which is installed apart: it needs Python and FUSE.
Action declare_mount(Arguments& arguments) {
  auto directory = std::make_shared<std::string>();
  arguments.add("DIRECTORY", *directory, "Where the slices are to be seen as directories").required();

  return [directory](Context& context) -> Outcome<int> {
    constexpr const char* kTool = "gpuctl-mount";
    ::execlp(kTool, kTool, "--socket", context.socket.c_str(), "--", directory->c_str(), nullptr);
    if (errno == ENOENT)
      return Failure{kExitRefused,
                     "mount: gpuctl-mount is not installed; it is in the Python package gpuctl (Debian: "
                     "python3-gpuctl)"};
    return Failure{kExitRefused, std::string("mount: cannot execute gpuctl-mount: ") + std::strerror(errno)};
  };
}

}  // namespace gpuctl::cli
