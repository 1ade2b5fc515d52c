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

#include "base/in_container.h"
#include "ipc/message.h"

namespace gpuctl::cli {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

constexpr const char* kKind = "gpuctl.io/slice";
constexpr const char* kLeastVersion = "0.3.0";
constexpr const char* kVersionForDigits = "0.5.0";  // for names that begin with a digit

// Where a container has what is mounted, beside what base/in_container.h says. The helper of a build tree is where the
// library looks for it.
constexpr const char* kCompileHelper = "/usr/lib/gpuctl/glibc-hwcaps/gpuslice-compile/gpuslice-compile";
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

bool may_be_a_name(const std::string& path) {
  return !path.empty() && is_letter_or_digit(path.front()) && is_letter_or_digit(path.back());
}

json::object mount(const std::string& from, const std::string& to) {
  return {{"hostPath", from}, {"containerPath", to}, {"options", {"ro", "nosuid", "nodev", "rbind", "rprivate"}}};
}

fs::path preload_file(const CdiPlan& plan) {
  return fs::path(plan.library).parent_path() / "ld.so.preload";
}

json::object edits_of_slice(const CdiPlan& plan, const std::string& path, const std::string& name) {
  // Some file: the container looks at its name alone.
  return {{"env", json::array{"GPUCTL_SLICE=" + path}},
          {"mounts", json::array{mount(preload_file(plan), kContainerSlices + ('/' + name))}}};
}

json::object edits_of_all(const CdiPlan& plan) {
  const fs::path socket(plan.socket);
  // Directories where the files in them may be replaced: another socket, the library of the next version.
  json::array mounts{mount(socket.parent_path(), kSocketDirectory),
                     mount(fs::path(plan.library).parent_path(), kContainerLibraries),
                     mount(preload_file(plan), "/etc/ld.so.preload"), mount(plan.gpuctl, kGpuctl)};
  if (!plan.compile_helper.empty()) mounts.emplace_back(mount(plan.compile_helper, kCompileHelper));
  if (!plan.software_gpu.empty()) {
    mounts.emplace_back(mount(plan.software_gpu, kContainerSoftwareGpu));
    for (const fs::path directory : kSystemLibraries)
      for (const char* name : {"libcuda.so.1", "libcudart.so.13"})
        mounts.emplace_back(mount(fs::path(plan.software_gpu) / name, directory / name));
  }
  return {{"env", json::array{"GPUCTL_SOCKET=" + (kSocketDirectory / socket.filename()).string()}},
          {"mounts", std::move(mounts)}};
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
    if (!may_be_a_name(path)) {
      document.nameless.push_back(path);
      continue;
    }
    digits = digits || is_digit(name.front());
    devices.push_back({{"name", name}, {"containerEdits", edits_of_slice(plan, path, name)}});
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
