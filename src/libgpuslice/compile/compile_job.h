// One image for the compile helper (src/gpuslice-compile): memory that this process shares with it.
//
// The memory is a memfd. It holds the request, and later the answer. The program keeps a mapping and no descriptor,
// since a program may close descriptors that it did not open. So nothing here waits, and a program that ends leaves the
// helper to finish for the next start.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "ipc/unique_fd.h"
#include "libgpuslice/cache/content_hash.h"
#include "libgpuslice/compile/forms.h"

namespace gpuslice {

struct CompileRequest {
  std::string ptx;            ///< one PTX text
  ContentHash key;            ///< under which the forms are kept
  unsigned sm = 0;            ///< compute capability, 90 for 9.0
  int max_registers = 0;      ///< for each thread; 0 = no limit
  bool guards = false;        ///< make guarded forms too
  bool software_gpu = false;  ///< the driver is the software GPU's, so only its own linker makes code that it runs
  std::string linker;  ///< path of the nvJitLink, or software GPU, that the program has loaded; empty: look for one
};

/// One thread at a time, but for answered().
class CompileJob {
 public:
  /// Memory for the request and any answer to it. Errors: the system refuses memory.
  static gpuctl::Result<CompileJob> create(const CompileRequest& request);
  /// In the helper: the job behind a descriptor. Errors: there is none.
  static gpuctl::Result<CompileJob> open(int descriptor);

  CompileJob(CompileJob&&) noexcept = default;
  CompileJob& operator=(CompileJob&&) noexcept = default;

  /// For the helper, which inherits it; closed by close_descriptor().
  int descriptor() const { return descriptor_.get(); }
  void close_descriptor() { descriptor_ = gpuctl::ipc::UniqueFd(); }

  /// What is asked for; an error where the memory does not hold it.
  gpuctl::Result<CompileRequest> request() const;

  /// The helper's word. An answer too long for the memory becomes one that says so.
  void answer(const Forms& forms);
  /// Whether there is an answer. Any thread.
  bool answered() const;
  /// The answer; nothing if there is none, or it is damaged.
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
