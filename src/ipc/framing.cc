#include "ipc/framing.h"

#include <algorithm>
#include <utility>

namespace gpuctl::ipc {

Result<void> MessageSplitter::feed(std::string_view bytes) {
  while (!broken_) {
    const std::size_t end = bytes.find('\0');
    const std::string_view piece = bytes.substr(0, end);
    if (piece.size() > max_bytes_ - std::min(max_bytes_, partial_.size())) {
      broken_ = true;
      partial_ = {};
      break;
    }
    partial_ += piece;
    if (end == std::string_view::npos) return {};
    complete_bytes_ += partial_.size();
    complete_.push_back(std::exchange(partial_, {}));
    bytes.remove_prefix(end + 1);
  }
  return fail("message longer than " + std::to_string(max_bytes_) + " bytes");
}

std::optional<std::string> MessageSplitter::next() {
  if (complete_.empty()) return std::nullopt;
  std::string message = std::move(complete_.front());
  complete_.pop_front();
  complete_bytes_ -= message.size();
  return message;
}

}  // namespace gpuctl::ipc
