// Another program's word on something: run for a moment, with a limit on its time and on what it says.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace gpuctl::cli {

struct ChildSaid {
  int status = 0;    ///< exit status; 128 + the signal that ended it
  std::string text;  ///< standard output and standard error, the first 64 KiB
};

/// Runs `arguments`, whose first is looked up in PATH, with more variables in its environment. Nothing if it cannot be
/// started or takes longer; then it is killed.
std::optional<ChildSaid> ask_child(const std::vector<std::string>& arguments,
                                   const std::vector<std::pair<std::string, std::string>>& environment = {},
                                   std::chrono::milliseconds patience = std::chrono::seconds(10));

}  // namespace gpuctl::cli
