// The forms of an image's kernels, as the compile helper (src/gpuslice-compile) makes them: machine code with the
// original and the added entries, and what the runtime must know of each kernel. They are kept in the user's cache
// directory for the program's next start.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libgpuslice/image/cache_directory.h"
#include "libgpuslice/image/image_kernel.h"

namespace gpuslice {

/// Everything that decides what is made of a PTX text, except the version of the rewriter.
struct FormsKey {
  std::string_view ptx;    ///< as it comes with the program
  unsigned sm = 0;         ///< compute capability, 90 for 9.0
  int max_registers = 0;   ///< the program's own limit per thread; 0: none
  int driver_version = 0;  ///< the result of cuDriverGetVersion()
};

struct Forms {
  std::string code;                  ///< machine code to load; empty: no kernel has another form than its original
  std::vector<ImageKernel> kernels;  ///< every entry of the PTX
  bool stands_alone = false;         ///< gpuctl::ptx::stands_alone() of the PTX
  std::string reason;  ///< why kernels that could have forms have no code, or why the PTX was not understood
};

/// The key under which the forms are kept.
ContentHash cache_key(const FormsKey& key);

/// The forms kept under the key, or nothing. Any thread.
std::optional<Forms> find_forms(const ContentHash& key, const CacheDirectory& cache);

/// Keeps the forms. Returns false if that fails.
bool keep_forms(const ContentHash& key, const Forms& forms, const CacheDirectory& cache);

/// Converts forms to bytes and back. unpack() returns nothing if pack() did not make the bytes.
std::string pack(const Forms& forms);
std::optional<Forms> unpack(std::string_view bytes);

}  // namespace gpuslice
