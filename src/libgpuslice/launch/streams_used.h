// Whether the program uses more than one stream of a context (Context::use_stream).
#pragma once

#include <optional>

#include "libgpuslice/driver/stream_key.h"

namespace gpuslice {

/// The caller holds the book's mutex.
class StreamsUsed {
 public:
  /// Returns true for the first stream that is not the only one any more.
  bool add(const StreamKey& key) {
    if (several_) return false;
    several_ = only_ && *only_ != key;
    if (!several_) only_ = key;
    return several_;
  }
  bool several() const { return several_; }

 private:
  std::optional<StreamKey> only_;
  bool several_ = false;
};

}  // namespace gpuslice
