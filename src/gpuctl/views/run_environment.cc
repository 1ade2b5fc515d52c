#include "gpuctl/views/run_environment.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "base/in_container.h"
#include "base/installed.h"
#include "base/visible_devices.h"

namespace gpuctl::cli {
namespace {

namespace fs = std::filesystem;

/// `mine` in front of `list`, and nowhere else in it. `separators` are those that ld.so accepts for this variable.
std::string in_front(const std::string& mine, const std::string& list, const char* separators) {
  std::string result = mine;
  for (std::size_t begin = 0; begin < list.size();) {
    const std::size_t end = std::min(list.find_first_of(separators, begin), list.size());
    const std::string item = list.substr(begin, end - begin);
    if (!item.empty() && item != mine) result += ':' + item;
    begin = end + 1;
  }
  return result;
}

std::string whole(const std::string& path, const std::string& file) {
  return file.empty() ? path : path + '/' + file;
}

/// The first of: the environment variable, a path in the executable's build tree, that of a container, `name` as it is
/// installed. `file` is what a directory must hold.
std::string choose(const char* variable, const std::string& self, const fs::path& in_build_tree,
                   const fs::path& in_container, const fs::path& name, const char* file) {
  std::error_code ignored;
  if (const char* value = std::getenv(variable); value != nullptr && *value != '\0') return fs::absolute(value);
  const fs::path near = (fs::path(self).parent_path() / in_build_tree).lexically_normal();
  if (!self.empty() && fs::exists(whole(near, file), ignored)) return near;
  if (fs::exists(whole(in_container, file), ignored)) return in_container;
  return installed(self, GPUCTL_BINDIR, GPUCTL_LIBDIR, name);
}

Result<std::string> usable(const std::string& path, const char* file, const char* separators, const char* variable) {
  const std::string wanted = whole(path, file);
  if (::access(wanted.c_str(), R_OK) != 0) return fail("cannot read " + wanted + "; install it or set " + variable);
  if (path.find_first_of(separators) != std::string::npos)
    return fail("the dynamic linker cannot take the path '" + path + "': it holds a space, colon or semicolon; set " +
                variable);
  return path;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> run_environment(const RunPlan& plan) {
  std::vector<std::pair<std::string, std::string>> variables{
      {"GPUCTL_SOCKET", plan.socket},
      {"GPUCTL_SLICE", plan.slice},
      {"LD_PRELOAD", in_front(plan.library, plan.ld_preload, ": ")},
  };
  if (!plan.software_gpu.empty())
    variables.emplace_back("LD_LIBRARY_PATH", in_front(plan.software_gpu, plan.ld_library_path, ":;"));
  if (plan.visible_devices) variables.emplace_back(kVisibleDevices, *plan.visible_devices);
  return variables;
}

Result<std::string> find_library(const std::string& self) {
  const fs::path in_container = fs::path(kContainerLibraries) / "libgpuslice.so";
  const std::string path =
      choose("GPUCTL_LIBGPUSLICE", self, "../libgpuslice/libgpuslice.so", in_container, kSliceLibrary, "");
  return usable(path, "", ": ", "GPUCTL_LIBGPUSLICE");
}

Result<std::string> find_software_gpu(const std::string& self) {
  const char* driver = "libcuda.so.1";
  const std::string path =
      choose("GPUCTL_SOFTGPU", self, "../../softgpu", kContainerSoftwareGpu, "gpuctl/softgpu", driver);
  return usable(path, driver, ":;", "GPUCTL_SOFTGPU");
}

}  // namespace gpuctl::cli
