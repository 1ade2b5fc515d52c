// The file may lie in a directory of an older podman, which takes no document of a version later than it knows. So the
// version is the least that the fields need, and fields that need a later one are left out: a bind mount is one by its
// options.
//
// `env` of a device takes the place of what the image has, so LD_PRELOAD and LD_LIBRARY_PATH are left alone.
#include "gpuctl/views/cdi.h"

#include <algorithm>
#include <array>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <filesystem>

#include "ipc/message.h"

namespace gpuctl::cli {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

constexpr const char* kKind = "gpuctl.io/slice";
constexpr const char* kLeastVersion = "0.3.0";
constexpr const char* kVersionForDigits = "0.5.0";  // for names that begin with a digit

// Where a container has what is mounted. libgpuslice-preload.so names the first (src/libgpuslice/preload).
constexpr const char* kLibraries = "/opt/gpuctl/glibc-hwcaps/x86-64-v2";
constexpr const char* kCompileHelper = "/opt/gpuctl/gpuslice-compile";
constexpr const char* kSoftwareGpu = "/opt/gpuctl/softgpu";
constexpr const char* kGpuctl = "/usr/local/bin/gpuctl";
constexpr const char* kSocketDirectory = "/run/gpuctld";
// Where dynamic linkers look by themselves, in Debian and in most others.
constexpr std::array kSystemLibraries{"/usr/lib/x86_64-linux-gnu", "/usr/lib64"};

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_letter_or_digit(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/// batch/train is batch:train, as names of slices have no colon. Empty if no device can be called so.
std::string device_name(std::string path) {
  if (path.empty() || !is_letter_or_digit(path.front()) || !is_letter_or_digit(path.back())) return {};
  std::ranges::replace(path, '/', ':');
  return path;
}

json::object mount(const std::string& from, const std::string& to) {
  return {{"hostPath", from}, {"containerPath", to}, {"options", {"ro", "nosuid", "nodev", "rbind", "rprivate"}}};
}

json::object edits_of_all(const CdiPlan& plan) {
  const fs::path socket(plan.socket), libraries = fs::path(plan.library).parent_path();
  json::array env{"GPUCTL_SOCKET=" + (kSocketDirectory / socket.filename()).string(),
                  "GPUCTL_LIBGPUSLICE=" + (kLibraries / fs::path(plan.library).filename()).string()};
  // Directories where the files in them may be replaced: another socket, the library of the next version.
  json::array mounts{mount(socket.parent_path(), kSocketDirectory), mount(libraries, kLibraries),
                     mount(libraries / "ld.so.preload", "/etc/ld.so.preload"), mount(plan.gpuctl, kGpuctl)};
  if (!plan.compile_helper.empty()) {
    env.emplace_back(std::string("GPUSLICE_COMPILE_HELPER=") + kCompileHelper);
    mounts.emplace_back(mount(plan.compile_helper, kCompileHelper));
  }
  if (!plan.software_gpu.empty()) {
    env.emplace_back(std::string("GPUCTL_SOFTGPU=") + kSoftwareGpu);
    mounts.emplace_back(mount(plan.software_gpu, kSoftwareGpu));
    for (const fs::path directory : kSystemLibraries)
      for (const char* name : {"libcuda.so.1", "libcudart.so.13"})
        mounts.emplace_back(mount(fs::path(plan.software_gpu) / name, directory / name));
  }
  return {{"env", std::move(env)}, {"mounts", std::move(mounts)}};
}

}  // namespace

CdiDocument cdi_document(const CdiPlan& plan, const std::vector<ipc::Slice>& slices) {
  CdiDocument document;
  std::vector<std::string> paths;
  for (const ipc::Slice& slice : slices)
    if (slice.path != "/") paths.push_back(slice.path);
  std::ranges::sort(paths);
  json::array devices;
  bool digits = false;
  for (const std::string& path : paths) {
    const std::string name = device_name(path);
    if (name.empty()) {
      document.nameless.push_back(path);
      continue;
    }
    digits = digits || is_digit(name.front());
    devices.push_back({{"name", name}, {"containerEdits", {{"env", json::array{"GPUCTL_SLICE=" + path}}}}});
  }
  if (devices.empty()) return document;
  document.json = ipc::to_text({{"cdiVersion", digits ? kVersionForDigits : kLeastVersion},
                                {"kind", kKind},
                                {"containerEdits", edits_of_all(plan)},
                                {"devices", std::move(devices)}}) +
                  '\n';
  return document;
}

}  // namespace gpuctl::cli
