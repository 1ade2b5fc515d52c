// Varlink framing: a message is JSON text followed by one NUL byte.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/string_memory.h"

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

  /// All bytes that next() has not returned yet; nothing is left here.
  std::string take_buffered();

  /// True if next() would return a message.
  bool has_complete() const { return at_ < partial_at_; }

  /// From now on messages may be as long as this.
  void limit(std::size_t max_bytes) { max_bytes_ = max_bytes; }

  /// Bytes that next() has not returned yet: messages with their NULs, and the part of one that has arrived.
  std::size_t buffered() const { return bytes_.size() - at_; }

  /// Bytes of memory taken for them. At most an eighth more than there are, and as many again that next() has returned.
  std::size_t memory() const { return memory_of(bytes_); }

  /// True if part of a message has arrived, but not its end.
  bool mid_message() const { return partial_at_ < bytes_.size(); }

 private:
  void append(std::string_view bytes);
  void drop_returned();

  std::size_t max_bytes_;
  /// As they came, because a peer may send nothing but NULs, and each message as a string would take more than its
  /// byte.
  std::string bytes_;
  std::size_t at_ = 0;          ///< where the next message begins
  std::size_t partial_at_ = 0;  ///< where the part of one begins that has no end yet
  bool broken_ = false;
};

}  // namespace gpuctl::ipc
