#include "ipc/framing.h"

#include <utility>

namespace gpuctl::ipc {

Result<void> MessageSplitter::feed(std::string_view bytes) {
  while (!broken_) {
    const std::size_t end = bytes.find('\0');
    if (bytes_.size() - partial_at_ + bytes.substr(0, end).size() > max_bytes_) {
      broken_ = true;
      bytes_.resize(partial_at_);
      break;
    }
    append(bytes.substr(0, end == std::string_view::npos ? end : end + 1));
    if (end == std::string_view::npos) return {};
    partial_at_ = bytes_.size();
    bytes.remove_prefix(end + 1);
  }
  return fail("message longer than " + std::to_string(max_bytes_) + " bytes");
}

std::optional<std::string> MessageSplitter::next() {
  if (!has_complete()) return std::nullopt;
  const std::size_t end = bytes_.find('\0', at_);
  std::string message = bytes_.substr(at_, end - at_);
  at_ = end + 1;
  if (at_ > bytes_.size() / 2) drop_returned();
  return message;
}

/// A string by itself would take twice the memory.
void MessageSplitter::append(std::string_view bytes) {
  const std::size_t size = bytes_.size() + bytes.size();
  if (size > bytes_.capacity()) {
    std::string larger;
    larger.reserve(size + size / 8);
    larger.append(bytes_);
    bytes_.swap(larger);
  }
  bytes_.append(bytes);
}

void MessageSplitter::drop_returned() {
  std::string rest = bytes_.substr(at_);
  bytes_.swap(rest);
  partial_at_ -= std::exchange(at_, 0);
}

std::string MessageSplitter::take_buffered() {
  bytes_.erase(0, std::exchange(at_, 0));
  partial_at_ = 0;
  return std::exchange(bytes_, {});
}

}  // namespace gpuctl::ipc
