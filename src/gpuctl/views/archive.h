// Static libraries: archives in the format of ar(1), of GNU and of BSD.
#pragma once

#include <vector>

#include "base/result.h"
#include "ptx/container/fatbin.h"

namespace gpuctl::cli {

/// Whether `file` begins as an archive does.
bool is_archive(ptx::Bytes file);

/// The entries of all members with device code, which point into `file`. Members without are passed over. Errors name
/// the member, or the offset in the file.
Result<std::vector<ptx::FatbinEntry>> read_archive(ptx::Bytes file);

}  // namespace gpuctl::cli
