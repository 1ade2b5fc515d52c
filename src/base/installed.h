// Where installed files lie. An installed tree may lie elsewhere than it was built for: below a DESTDIR, or moved.
#pragma once

#include <array>
#include <filesystem>
#include <string>
#include <system_error>

namespace gpuctl {

/// The file of the running program; empty if that is not known.
inline std::string own_executable() {
  std::error_code error;
  const std::filesystem::path path = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? "" : path.string();
}

/// Where the compile helper lies beside the library: installed, in a container, in a build tree.
inline constexpr std::array<const char*, 3> kCompileHelperPlaces{"gpuctl/gpuslice-compile", "gpuslice-compile",
                                                                 "../gpuslice-compile/gpuslice-compile"};

/// The library for programs that run, by its soname. The name without a number is for those who link it.
inline constexpr const char* kSliceLibrary = "libgpuslice.so.0";

/// The file `name` in `directory`, for a program that runs as `self` and belongs into `own`: there by the same way as
/// from `own`, else in `directory` itself.
inline std::filesystem::path installed(const std::filesystem::path& self, const std::filesystem::path& own,
                                       const std::filesystem::path& directory, const std::filesystem::path& name) {
  std::error_code ignored;
  const auto by_way = (self.parent_path() / directory.lexically_relative(own) / name).lexically_normal();
  return !self.empty() && std::filesystem::exists(by_way, ignored) ? by_way : directory / name;
}

}  // namespace gpuctl
