// Little-endian reads from a byte range, never outside it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <type_traits>

namespace gpuctl::ptx {

using Bytes = std::span<const std::byte>;

/// The value of type T at `offset`, which need not be aligned; nothing when it does not lie in `bytes`.
template <class T>
std::optional<T> read_at(Bytes bytes, std::uint64_t offset) {
  static_assert(std::is_trivially_copyable_v<T>);
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

/// `length` bytes at `offset`; nothing when they do not lie in `bytes`.
inline std::optional<Bytes> slice(Bytes bytes, std::uint64_t offset, std::uint64_t length) {
  if (offset > bytes.size() || bytes.size() - offset < length) return std::nullopt;
  return bytes.subspan(offset, length);
}

}  // namespace gpuctl::ptx
