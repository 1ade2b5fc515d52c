// A set of SMs of one device, by their %smid: what a grant names. Fixed size, so that it can lie in shared memory.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace gpuctl {

/// More than any GPU has. SMs beyond belong to no set.
inline constexpr std::uint32_t kMaxSms = 256;

class SmSet {
 public:
  static constexpr std::size_t kWords = kMaxSms / 32;
  using Words = std::array<std::uint32_t, kWords>;

  constexpr SmSet() = default;
  constexpr explicit SmSet(const Words& words) : words_(words) {}

  /// SMs 0 to count - 1.
  static constexpr SmSet first(std::uint32_t count) {
    SmSet result;
    for (std::uint32_t sm = 0; sm < count && sm < kMaxSms; ++sm) result.insert(sm);
    return result;
  }
  static constexpr SmSet everything() { return first(kMaxSms); }

  constexpr void insert(std::uint32_t sm) { words_[sm / 32] |= 1u << (sm % 32); }
  constexpr void erase(std::uint32_t sm) { words_[sm / 32] &= ~(1u << (sm % 32)); }
  constexpr bool contains(std::uint32_t sm) const { return sm < kMaxSms && (words_[sm / 32] >> (sm % 32) & 1) != 0; }
  constexpr bool empty() const { return *this == SmSet{}; }
  constexpr std::uint32_t size() const {
    std::uint32_t count = 0;
    for (const std::uint32_t word : words_) count += static_cast<std::uint32_t>(std::popcount(word));
    return count;
  }

  /// The `count` lowest, or highest, SMs of this set; all of them if it has fewer.
  constexpr SmSet lowest(std::uint32_t count) const {
    SmSet result;
    for (std::uint32_t sm = 0; sm < kMaxSms && count > 0; ++sm) {
      if (!contains(sm)) continue;
      result.insert(sm);
      --count;
    }
    return result;
  }
  constexpr SmSet highest(std::uint32_t count) const {
    SmSet result;
    for (std::uint32_t sm = kMaxSms; sm-- > 0 && count > 0;) {
      if (!contains(sm)) continue;
      result.insert(sm);
      --count;
    }
    return result;
  }

  constexpr SmSet& operator|=(const SmSet& other) {
    for (std::size_t i = 0; i < kWords; ++i) words_[i] |= other.words_[i];
    return *this;
  }
  constexpr SmSet& operator&=(const SmSet& other) {
    for (std::size_t i = 0; i < kWords; ++i) words_[i] &= other.words_[i];
    return *this;
  }
  /// Set difference.
  constexpr SmSet& operator-=(const SmSet& other) {
    for (std::size_t i = 0; i < kWords; ++i) words_[i] &= ~other.words_[i];
    return *this;
  }
  friend constexpr SmSet operator|(SmSet a, const SmSet& b) { return a |= b; }
  friend constexpr SmSet operator&(SmSet a, const SmSet& b) { return a &= b; }
  friend constexpr SmSet operator-(SmSet a, const SmSet& b) { return a -= b; }
  friend constexpr bool operator==(const SmSet&, const SmSet&) = default;

  constexpr const Words& words() const { return words_; }

 private:
  Words words_{};
};
static_assert(sizeof(SmSet) == 32);

}  // namespace gpuctl
