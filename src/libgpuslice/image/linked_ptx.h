// What the driver's linker (cuLink*) is given, as far as it shows that the output is made of one PTX and nothing else.
// Programs that compile PTX this way, for example Numba, load a cubin; its PTX then is known (known_ptx.h).
#pragma once

#include <cuda.h>

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "libgpuslice/image/known_ptx.h"

namespace gpuslice {

/// By CUlinkState. Any thread.
class LinkedPtx {
 public:
  static LinkedPtx& get();

  /// A linker was created with these options.
  void created(CUlinkState state, unsigned count, const CUjit_option* options, void* const* values);
  /// The linker was given PTX, with these options for it.
  void added(CUlinkState state, std::string_view text, unsigned count, const CUjit_option* options,
             void* const* values);
  /// The linker was given something else.
  void added_other(CUlinkState state);
  /// The PTX that the output is made of. Nothing if it is made of more than one PTX, or if options affected it that a
  /// load cannot repeat.
  std::optional<KnownPtx> made_of(CUlinkState state) const;
  void destroyed(CUlinkState state);
  void forget_after_fork();

 private:
  struct Input {
    std::optional<KnownPtx> ptx;
    int max_registers = 0;
    bool known = true;
  };
  mutable std::mutex mutex_;
  std::map<CUlinkState, Input> inputs_;
};

}  // namespace gpuslice
