// What both gpuctld and `gpuctld --mps-start`, which starts MPS for it as another user, know of an MPS of gpuctld's
// own.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace gpuctl::daemon {

/// Below it each MPS has its pipe directory that `gpuctld --mps-start` starts.
inline constexpr std::string_view kServiceMps = "/run/gpuctl/mps";

/// Whether it can be the name of such a directory: letters and digits, no more than a few.
bool is_mps_name(std::string_view name);
/// The name of the MPS whose pipe directory that is; "": it is none below kServiceMps.
std::string_view service_mps_name(std::string_view pipe_directory);

/// NAME=VALUE, for the control daemon and its servers. `socket`: where the library inside finds gpuctld.
std::vector<std::string> mps_environment(const std::string& pipe_directory, const std::string& socket);
/// MPS makes none. Nobody else may have made it, nor the one above it, as in a directory for all.
Result<void> make_mps_directory(const std::string& directory);
/// Behind the name of an MPS: it is to serve one user at a time, whatever the control program knows.
inline constexpr std::string_view kOneUser = " one";
/// `how`: "-d" for the background, or "-f".
std::vector<std::string> mps_arguments(const std::string& program, const std::string& how, bool one_user);

/// Reads a name, perhaps with kOneUser, from `in`, answers on `out` as answer_mps_command() does, and becomes the
/// control daemon of that MPS. Returns the exit status if it cannot.
int become_mps(int in, int out);

}  // namespace gpuctl::daemon
