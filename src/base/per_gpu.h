// Amounts that are not the same number on every GPU, as people write them: "25%" of each, "1:16" on GPU 1 alone, or
// both and more of them in a list. They stand in place of the number that a setting has for every GPU, or beside it.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/limit_text.h"
#include "base/parts.h"

namespace gpuctl {

/// What an amount counts. Only bytes may have a unit.
enum class AmountOf { sms, bytes };

/// The text of a setting without any: it is the same number on every GPU.
inline constexpr std::string_view kSameOnEach = "none";

/// Whether the text is more than one number for every GPU.
inline bool is_per_gpu(std::string_view text) {
  return text.find_first_of("%,:") != std::string_view::npos;
}

/// What such a value must look like, for errors.
constexpr std::string_view per_gpu_form(AmountOf of) {
  return of == AmountOf::sms ? "SMs or whole per cent such as 8 or 25%, for one GPU 0:8, or a list that names each GPU "
                               "once such as 25%,1:8"
                             : "a size or whole per cent such as 16G or 25%, for one GPU 0:16G, or a list that names "
                               "each GPU once such as 25%,1:16G";
}

inline constexpr std::size_t kMostPerGpu = 64;      ///< amounts in one list
inline constexpr std::size_t kMostIndexDigits = 4;  ///< of a GPU's index
inline constexpr std::string_view kUuidBegin = "GPU-";
inline constexpr std::size_t kMostGpuName = 40;         ///< characters: a UUID has as many
inline constexpr std::int64_t kSmsGreatest = 0xfffffe;  ///< one more means "no limit" (sched/capsm.h)

/// Whether the text names a GPU: by its index, or by the beginning of its UUID.
inline bool is_gpu_name(std::string_view text) {
  const bool index = !text.empty() && text.find_first_not_of("0123456789") == text.npos &&
                     text.size() <= kMostIndexDigits && (text[0] != '0' || text.size() == 1);
  const bool uuid = text.size() > kUuidBegin.size() && text.starts_with(kUuidBegin) && text.size() <= kMostGpuName &&
                    text.find_first_not_of("0123456789abcdef-", kUuidBegin.size()) == text.npos;
  return index || uuid;
}

/// Whether such a text names this GPU. A UUID is recognised by its beginning, as by CUDA.
inline bool names_gpu(std::string_view text, std::int64_t index, std::string_view uuid) {
  return text == std::to_string(index) || (text.starts_with(kUuidBegin) && uuid.starts_with(text));
}

/// The amounts of one setting by GPU. In a list the first part may be for every GPU that the others do not name.
class PerGpu {
 public:
  /// One amount: a number, a part of what the GPU has, or no limit.
  struct Amount {
    std::int64_t number = 0;
    bool per_cent = false;
    bool lifted = false;
    bool operator==(const Amount&) const = default;
  };
  struct One {
    std::string gpu;  ///< its index or UUID; "": every other GPU
    Amount amount;
    bool operator==(const One&) const = default;

    bool names(std::int64_t index, std::string_view uuid) const { return names_gpu(gpu, index, uuid); }
  };

  bool empty() const { return list_.empty(); }
  const std::vector<One>& list() const { return list_; }
  bool operator==(const PerGpu&) const = default;

  /// What is set for the GPU; null: the number for every GPU.
  const Amount* find(std::int64_t index, std::string_view uuid) const {
    const Amount* others = nullptr;
    for (const One& one : list_) {
      if (one.gpu.empty())
        others = &one.amount;
      else if (one.names(index, uuid))
        return &one.amount;
    }
    return others;
  }

  /// As parse_per_gpu reads it; kSameOnEach if there are none.
  std::string text(AmountOf of) const {
    std::string all;
    for (const auto& [gpu, amount] : list_)
      all.append(all.empty() ? "" : ",").append(gpu).append(gpu.empty() ? "" : ":").append(amount_text(amount, of));
    return all.empty() ? std::string(kSameOnEach) : all;
  }

 private:
  friend std::optional<PerGpu> parse_per_gpu(std::string_view text, AmountOf of);

  static std::string amount_text(const Amount& amount, AmountOf of) {
    if (amount.lifted) return "none";
    if (amount.per_cent) return std::to_string(amount.number) + "%";
    return of == AmountOf::bytes ? size_text(amount.number) : std::to_string(amount.number);
  }

  std::vector<One> list_;
};

inline std::optional<PerGpu::Amount> parse_amount(std::string_view text, AmountOf of) {
  if (lifts_limit(text)) return PerGpu::Amount{.lifted = true};
  PerGpu::Amount amount{.per_cent = text.ends_with('%')};
  if (amount.per_cent) text.remove_suffix(1);
  std::optional<std::int64_t> number;
  if (of == AmountOf::bytes && !amount.per_cent) {
    number = parse_size(text);
  } else {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error == std::errc() && end == text.data() + text.size()) number = value;
  }
  constexpr std::int64_t kWhole = 100;
  const std::int64_t most = amount.per_cent ? kWhole : of == AmountOf::sms ? kSmsGreatest : INT64_MAX;
  if (!number || *number < 0 || *number > most) return std::nullopt;
  amount.number = *number;
  return amount;
}

/// Empty unless the text is a list of amounts, each "AMOUNT" or "GPU:AMOUNT", of which each names another GPU; or
/// kSameOnEach. An amount is a number, "none" for no limit, or whole per cent.
inline std::optional<PerGpu> parse_per_gpu(std::string_view text, AmountOf of) {
  PerGpu parsed;
  if (text == kSameOnEach) return parsed;
  const bool sound = each_part(text, [&](std::string_view part) {
    const std::size_t colon = part.rfind(':');
    const bool for_all = colon == std::string_view::npos;
    const std::string gpu(for_all ? std::string_view() : part.substr(0, colon));
    const auto amount = parse_amount(for_all ? part : part.substr(colon + 1), of);
    const bool twice = std::ranges::find(parsed.list_, gpu, &PerGpu::One::gpu) != parsed.list_.end();
    if (!amount || twice || !(for_all ? parsed.empty() : is_gpu_name(gpu))) return false;
    if (parsed.list_.size() == kMostPerGpu) return false;
    parsed.list_.push_back({gpu, *amount});
    return true;
  });
  return sound ? std::optional(std::move(parsed)) : std::nullopt;
}

/// One text of what a setting has for every GPU, "8" or "none", and for single ones, as people write it. `fallback`:
/// the number's default as text, which a list need not begin with.
inline std::string amount_text(std::string number, std::string_view fallback, std::string_view per_gpu) {
  if (per_gpu == kSameOnEach) return number;
  const bool for_all = per_gpu.substr(0, per_gpu.find(',')).find(':') == std::string_view::npos;
  if (for_all || number == fallback) return std::string(per_gpu);
  return std::move(number.append(",").append(per_gpu));
}

}  // namespace gpuctl
