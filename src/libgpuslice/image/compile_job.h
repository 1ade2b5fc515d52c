// One image for the compile helper (src/gpuslice-compile), in memory that this process shares with it.
//
// The memory is a memfd. It holds the request, and later the answer. The program keeps a mapping and no descriptor,
// since programs may close descriptors that they did not open. So nothing here waits, and if a program ends, the helper
// still finishes for the program's next start.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "ipc/unique_fd.h"
#include "libgpuslice/image/content_hash.h"
#include "libgpuslice/image/forms.h"

namespace gpuslice {

struct CompileRequest {
  std::string ptx;         ///< one PTX text
  ContentHash key;         ///< the forms are kept under this key
  unsigned sm = 0;         ///< compute capability, 90 for 9.0
  int max_registers = 0;   ///< per thread; 0: no limit
  bool by_driver = false;  ///< the driver runs only what its own linker makes
  /// Path of the nvJitLink, or of that driver, that the program has loaded; empty: the helper looks for one.
  std::string linker;
};

/// One thread at a time, except for answered().
class CompileJob {
 public:
  /// Makes memory for the request and any answer to it. Error: the system refuses the memory.
  static gpuctl::Result<CompileJob> create(const CompileRequest& request);
  /// Called in the helper. Opens the job behind a descriptor. Error: there is no job.
  static gpuctl::Result<CompileJob> open(int descriptor);

  CompileJob(CompileJob&&) noexcept = default;
  CompileJob& operator=(CompileJob&&) noexcept = default;

  /// The descriptor that the helper inherits. close_descriptor() closes it.
  int descriptor() const { return descriptor_.get(); }
  void close_descriptor() { descriptor_ = gpuctl::ipc::UniqueFd(); }

  /// The request. Error: the memory does not hold one.
  gpuctl::Result<CompileRequest> request() const;

  /// Called in the helper. Writes the answer. If it is too long for the memory, writes one that says so.
  void answer(const Forms& forms);
  /// Whether there is an answer. Any thread.
  bool answered() const;
  /// The answer. Nothing if there is none or it is damaged.
  std::optional<Forms> take_answer() const;

 private:
  struct Header;
  struct Unmap {
    std::size_t bytes;
    void operator()(Header* header) const;
  };
  CompileJob(gpuctl::ipc::UniqueFd descriptor, Header* header, std::size_t bytes)
      : descriptor_(std::move(descriptor)), header_(header, Unmap{bytes}) {}

  gpuctl::ipc::UniqueFd descriptor_;
  std::unique_ptr<Header, Unmap> header_;
};

}  // namespace gpuslice
