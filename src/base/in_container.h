// What a container has of gpuctl, if it was started with a device of a slice (gpuctl cdi, gpuctl/views/cdi.cc).
#pragma once

#include <dirent.h>
#include <sys/stat.h>

#include <algorithm>
#include <memory>
#include <string>

namespace gpuctl {

/// libgpuslice.so and what belongs to it. preload/preload.c says why it has that name.
inline constexpr char kContainerLibraries[] = "/usr/lib/gpuctl/glibc-hwcaps/x86-64-v2";
inline constexpr char kContainerSoftwareGpu[] = "/usr/lib/gpuctl/softgpu";
/// A file for each slice whose device it has; its name counts, and that it is not empty. An image that was made of such
/// a container has empty ones, on which nothing is mounted. A variable of the environment would not do: what is started
/// later in the container (podman exec) has not those of a device.
inline constexpr char kContainerSlices[] = "/usr/lib/gpuctl/slices";

/// The name of a slice's device: batch/train is batch:train, as names of slices have no colon.
inline std::string device_name(std::string path) {
  std::replace(path.begin(), path.end(), '/', ':');
  return path;
}

/// The slice of this container; of several the one whose name comes first. Empty: this is no such container.
inline std::string container_slice(const char* directory = kContainerSlices) {
  std::string found;
  const std::unique_ptr<DIR, int (*)(DIR*)> open(::opendir(directory), ::closedir);
  while (const dirent* entry = open ? ::readdir(open.get()) : nullptr) {
    const std::string name = entry->d_name;
    struct stat status {};
    if (::fstatat(::dirfd(open.get()), entry->d_name, &status, 0) != 0 || !S_ISREG(status.st_mode) ||
        status.st_size == 0)
      continue;
    if (found.empty() || name < found) found = name;
  }
  std::replace(found.begin(), found.end(), ':', '/');
  return found;
}

}  // namespace gpuctl
