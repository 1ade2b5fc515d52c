// Rewriting offline: the PTX in a file, without a GPU and without a daemon.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "ptx/rewrite.h"

namespace gpuctl::cli {

/// One PTX text of the file, rewritten.
struct RewrittenModule {
  std::string architecture;  ///< "sm_90a": what the PTX was compiled for
  std::string options;       ///< for ptxas, recorded with the PTX; usually none
  std::string text;          ///< the original entries and the rewritten ones
  std::vector<ptx::EntryReport> entries;
};

struct RewrittenFile {
  std::vector<RewrittenModule> modules;   ///< in the order of the file
  std::vector<std::string> machine_code;  ///< architectures of parts without PTX; a cubin by itself names none: ""
};

/// Makes the persistent forms of all PTX in `path`: PTX text, a cubin, a fatbin, an ELF executable, library or
/// object file, or an archive of these. Nothing but a regular file is read. `begin` is called with the number of each
/// module, from 1 on, and how many there are. An error is one line with the file, the module if there are several, and
/// the line and column of the PTX or the offset in the file.
Result<RewrittenFile> rewrite_file(const std::string& path,
                                   const std::function<void(std::size_t, std::size_t)>& begin = nullptr);

/// Writes a single module to the file `out`. Writes several modules, or one if `out` is a directory, to OUT/1.sm_75.ptx
/// and so on, and makes that directory. Returns the paths. A file is complete or, after an error, as it was before.
Result<std::vector<std::string>> write_modules(const RewrittenFile& file, const std::string& out);

/// "persistent" or "opaque".
std::string form_name(ptx::Form form);

}  // namespace gpuctl::cli
