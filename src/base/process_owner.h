// As whom a process runs.
#pragma once

#include <cstdint>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

namespace gpuctl {

struct ProcessOwner {
  std::uint32_t uid = 0;            ///< effective
  std::vector<std::uint32_t> gids;  ///< effective and supplementary
};

/// Empty if the process does not exist. `proc` is where processes are looked up.
inline std::optional<ProcessOwner> owner_of(std::int32_t pid, const std::string& proc = "/proc") {
  std::ifstream status(proc + "/" + std::to_string(pid) + "/status");
  std::optional<ProcessOwner> owner;
  for (std::string line; std::getline(status, line);) {
    std::istringstream fields(line);
    std::string name;
    std::uint32_t real = 0, id = 0;
    fields >> name;
    if (name == "Uid:" && fields >> real >> id) owner = ProcessOwner{id, {}};
    if (name == "Gid:" && owner && fields >> real >> id) owner->gids.push_back(id);
    if (name != "Groups:" || !owner) continue;
    while (fields >> id) owner->gids.push_back(id);
    break;
  }
  return owner;
}

}  // namespace gpuctl
