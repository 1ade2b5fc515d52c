// The file that `gpuctl profile` writes: JSON, one line for each kernel.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ipc/types.h"

namespace gpuctl::cli {

/// The file's field "version". Changes whenever a field means something else.
inline constexpr std::int64_t kProfileVersion = 1;

struct Profile {
  std::string gpu;       ///< its name for the driver
  std::int64_t sms = 1;  ///< of that GPU
  std::vector<ipc::KernelProfile> kernels;
};

std::string to_text(const Profile& profile);

/// An error is one line: file, place if the text is no JSON, else the field.
Result<Profile> parse_profile(std::string_view text, const std::string& file);
Result<Profile> read_profile(const std::string& file);
/// An error if write_profile() would fail: measuring takes long.
Result<void> may_be_written(const std::string& file);
/// The file is complete or, after an error, as it was before.
Result<void> write_profile(const std::string& file, const Profile& profile);

/// An error unless the file belongs to the user or to root, and nobody else may write to it: what is in it is taught to
/// the daemon in that user's name.
Result<void> check_writers(const std::string& file, uid_t user);

}  // namespace gpuctl::cli
