// Varlink framing: a message is JSON text followed by one NUL byte.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace gpuctl::ipc {

/// Bytes of one message without its NUL: room for a few thousand kernels with long C++ names, small enough that a
/// peer that never sends a NUL costs the daemon little.
inline constexpr std::size_t kMaxMessageBytes = 4u << 20;

/// Cuts a byte stream into messages, in whatever pieces it arrives. Not thread-safe.
class MessageSplitter {
 public:
  explicit MessageSplitter(std::size_t max_bytes = kMaxMessageBytes) : max_bytes_(max_bytes) {}

  /// Takes the next bytes of the stream. Fails if a message is longer than the limit. From there on the stream cannot
  /// be understood, so every later call fails too: close the connection.
  Result<void> feed(std::string_view bytes);

  /// The next complete message in order of arrival, without its NUL.
  std::optional<std::string> next();

  /// True if next() would return a message.
  bool has_complete() const { return !complete_.empty(); }

  /// From now on messages may be as long as this.
  void limit(std::size_t max_bytes) { max_bytes_ = max_bytes; }

  /// Bytes of messages that next() has not returned yet, the part of one that has arrived included.
  std::size_t buffered() const { return complete_bytes_ + partial_.size(); }

  /// True if part of a message has arrived, but not its end.
  bool mid_message() const { return !partial_.empty(); }

 private:
  std::size_t max_bytes_;
  std::string partial_;
  std::deque<std::string> complete_;
  std::size_t complete_bytes_ = 0;
  bool broken_ = false;
};

}  // namespace gpuctl::ipc
