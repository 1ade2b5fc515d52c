// Which GPUs a program sees: the driver's variable CUDA_VISIBLE_DEVICES, by what its slice has.
#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/parts.h"
#include "base/per_gpu.h"

namespace gpuctl {

inline constexpr char kVisibleDevices[] = "CUDA_VISIBLE_DEVICES";

/// A GPU that a slice has: its index where the driver counts them all, and its UUID.
struct SliceGpu {
  std::int64_t index = 0;
  std::string uuid;
};

/// The beginning of a file, at most some KiB; "": it cannot be read.
inline std::string beginning_of(const std::string& file) {
  constexpr std::size_t kMost = 4096;
  std::string text(kMost, '\0');
  const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  const ssize_t size = fd < 0 ? 0 : ::read(fd, text.data(), text.size());
  if (fd >= 0) ::close(fd);
  text.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
  return text;
}

/// The value in a line "KEY:   VALUE" of a file of the NVIDIA driver; "": there is none.
inline std::string value_in(std::string_view text, std::string_view key) {
  const std::size_t line = text.find(key);
  const std::size_t value = line == text.npos ? line : text.find_first_not_of(" \t", line + key.size());
  return value == text.npos ? std::string() : std::string(text.substr(value, text.find('\n', value) - value));
}

/// Those of `gpus` that this process can open, as far as the driver's files tell: a container may lack the nodes of
/// some. The driver stops at the first of CUDA_VISIBLE_DEVICES that is not there. Without such files, all.
inline std::vector<SliceGpu> those_here(std::vector<SliceGpu> gpus,
                                        const std::string& driver = "/proc/driver/nvidia/gpus",
                                        const std::string& nodes = "/dev/nvidia") {
  bool known = false;
  std::vector<std::string> here;  // UUIDs
  DIR* const directory = ::opendir(driver.c_str());
  if (directory == nullptr) return gpus;
  while (const dirent* const entry = ::readdir(directory)) {
    const std::string text = beginning_of(driver + '/' + entry->d_name + "/information");
    const std::string uuid = value_in(text, "GPU UUID:"), minor = value_in(text, "Device Minor:");
    if (uuid.empty() || minor.empty()) continue;
    known = true;
    if (::access((nodes + minor).c_str(), F_OK) == 0) here.push_back(uuid);
  }
  ::closedir(directory);
  if (known) std::erase_if(gpus, [&](const SliceGpu& gpu) { return std::ranges::count(here, gpu.uuid) == 0; });
  return gpus;
}

/// What CUDA_VISIBLE_DEVICES is to be for a program of a slice that has these GPUs: their UUIDs; "": it sees none.
/// `own`: the program's own value; null: it has none. Then it is as much of `own` as the slice has, in that order. An
/// item that is no GPU's name ends that list, as for the driver. Numbers are the indices of `gpus`.
inline std::string visible_devices(std::span<const SliceGpu> gpus, const char* own) {
  std::string list;
  const auto add = [&](const SliceGpu& gpu) { list.append(list.empty() ? "" : ",").append(gpu.uuid); };
  if (own == nullptr) {
    std::ranges::for_each(gpus, add);
    return list;
  }
  each_part(own, [&](std::string_view part) {
    part.remove_prefix(std::min(part.find_first_not_of(' '), part.size()));
    part = part.substr(0, part.find_last_not_of(' ') + 1);
    std::string name(part);
    if (name.starts_with(kUuidBegin))
      for (std::size_t i = kUuidBegin.size(); i < name.size(); ++i)
        if (name[i] >= 'A' && name[i] <= 'F') name[i] = static_cast<char>(name[i] - 'A' + 'a');
    if (!is_gpu_name(name)) return false;
    const auto named =
        std::ranges::find_if(gpus, [&](const SliceGpu& gpu) { return names_gpu(name, gpu.index, gpu.uuid); });
    if (named != gpus.end()) add(*named);
    return true;
  });
  return list;
}

}  // namespace gpuctl
