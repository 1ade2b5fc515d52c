// What the driver's compiler made of rewritten text, kept for the next start: the driver keeps only what it compiled in
// a load.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "libgpuslice/cache_directory.h"

namespace gpuslice {

/// All that decides what the compiler makes. The rewriter's version is in the text.
struct CompileKey {
  std::string_view text;   ///< rewritten
  int driver_version = 0;  ///< as cuDriverGetVersion() gives it
  unsigned sm = 0;
  int max_registers = 0;  ///< 0 = no limit
};

/// An empty one: it could not be compiled in this way.
std::optional<std::string> find_compiled(const CompileKey& key, const CacheDirectory& cache);

/// False: it could not be kept.
bool keep_compiled(const CompileKey& key, std::string_view image, const CacheDirectory& cache);

}  // namespace gpuslice
