// What a verb returns when it could not do its work: one line for a person, one exit status for a script.
#pragma once

#include <string>
#include <utility>

#include "base/result.h"

namespace gpuctl::cli {

/// Exit statuses; gpuctl(1) documents them.
inline constexpr int kExitOk = 0;
inline constexpr int kExitRefused = 1;      ///< the daemon refused, or the output cannot be written
inline constexpr int kExitUsage = 2;        ///< the command line is wrong
inline constexpr int kExitUnreachable = 3;  ///< no daemon, or one that is not understood
inline constexpr int kExitRunFailed = 125;  ///< `run`: gpuctl itself failed, as with env(1) and timeout(1)
inline constexpr int kExitNotExecutable = 126;
inline constexpr int kExitNotFound = 127;

struct Failure {
  Failure() = default;
  Failure(int status, std::string text) : exit_status(status), message(std::move(text)) {}

  int exit_status = kExitOk;
  std::string message;  ///< one line; printed after "gpuctl: "
};

template <class T>
using Outcome = BasicResult<T, Failure>;

inline Failure usage(std::string message) {
  return {kExitUsage, std::move(message)};
}

}  // namespace gpuctl::cli
