// The control group of a process.
#pragma once

#include <cstdint>
#include <fstream>
#include <string>
#include <string_view>

namespace gpuctl {

/// The path of the process's cgroup, "/system.slice/ollama.service", as this process sees it; "": not known.
inline std::string cgroup_of(std::int32_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/cgroup");
  // "0::PATH" of version 2; of version 1, where systemd has a tree of its own, "NUMBER:name=systemd:PATH".
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(':'), path = line.find(":/", colon);
    if (colon == line.npos || path == line.npos || path + 2 == line.size()) continue;
    const std::string_view tree = std::string_view(line).substr(colon, path - colon);
    if (tree == ":" || tree == ":name=systemd") return line.substr(path + 1);
  }
  return {};
}

}  // namespace gpuctl
