// The settings of a slice, each described once, by the rows below.
//
// The rows make SliceSettings and kSliceSettings. From these come the fields of the interface io.gpuctl and of the
// state file (ipc/types.h), the keys of gpuctl.toml (gpuctld/config), the options and keys of gpuctl
// (gpuctl/line/settings.h), and the errors that name a range (sched/apply_change.h). Tests compare the interface file,
// the manual pages, the shipped configuration and the completion with the rows. sched says what a setting does.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

#include "base/per_gpu.h"

namespace gpuctl {

inline constexpr std::int64_t kIdGreatest = 0xfffffffe;  ///< of a user or group; one more is "nobody" to the kernel
inline constexpr std::int64_t kNoGroup = -1;             ///< as owner_gid: no group owns the slice

/// Values of reserve_mode, in the order of sched::ReserveMode, of isolation, and of frozen.
inline constexpr std::array<std::string_view, 2> kReserveModes{"strict", "active"};
inline constexpr std::array<std::string_view, 3> kIsolations{"auto", "shared", "isolated"};
inline constexpr std::array<std::string_view, 3> kFrozen{"no", "yes", "swapped"};

/// One row for each setting, in the order of help, manual and interface. A NUMBER and a TEXT always have a value. A
/// LIMIT is a number or lifted; a second field says that it is lifted. After the name comes the default, for a LIMIT
/// the name of its second field, and then members of SliceSetting. An amount of every GPU has a row behind it with what
/// single GPUs have instead.
// clang-format off
#define GPUCTL_SLICE_SETTINGS(NUMBER, TEXT, LIMIT) \
  NUMBER(reserve, 0, .kind = SettingKind::sms, .least = 0, .greatest = kSmsGreatest, \
         .option = "reserve", .argument = "N", .help = "SMs of every GPU that the slice has whenever it wants them: 8, 25%, or 0:8 of GPU 0 alone", \
         .per_gpu = &SliceSettings::reserve_per_gpu) \
  TEXT(reserve_per_gpu, "none", .kind = SettingKind::sms_per_gpu) \
  TEXT(reserve_mode, "active", .kind = SettingKind::choice, .choices = kReserveModes, \
       .option = "reserve-mode", .argument = "strict|active", \
       .help = "Keep the reserve free: always, or while the slice is active (default)") \
  NUMBER(reserve_hold_ms, 100, .kind = SettingKind::milliseconds, .least = 1, .greatest = 3'600'000, \
         .option = "reserve-hold", .argument = "TIME", \
         .help = "With mode active: how long after its last launch the slice counts as active (100ms)") \
  LIMIT(max, max_unlimited, .kind = SettingKind::sms, .least = 0, .greatest = kSmsGreatest, .on_root = true, \
        .option = "max", .argument = "N|none", .help = "SMs of every GPU that the slice uses at most: 40, 50%, or 0:40 of GPU 0 alone", \
        .per_gpu = &SliceSettings::max_per_gpu) \
  TEXT(max_per_gpu, "none", .kind = SettingKind::sms_per_gpu, .on_root = true) \
  TEXT(quota, "none", .kind = SettingKind::quota, .on_root = true, \
       .option = "quota", .argument = "TIME/PERIOD|none", \
       .help = "Time of each whole GPU that it uses in each period at most: 40ms/100ms, or 0:40ms/100ms of GPU 0 alone") \
  TEXT(burst, "none", .kind = SettingKind::burst, .on_root = true, \
       .option = "burst", .argument = "TIME|none", \
       .help = "Unused quota of each GPU that it may use later, at most: 20ms, or 0:20ms of GPU 0 alone") \
  NUMBER(weight, 100, .kind = SettingKind::number, .least = 1, .greatest = 10'000, \
         .option = "weight", .argument = "N", .example = "50", \
         .help = "Share of what is left after the reserves, relative to its siblings, 1 to 10000 (100)") \
  NUMBER(priority, 0, .kind = SettingKind::number, .least = -100, .greatest = 100, \
         .option = "priority", .argument = "N", .example = "10", .help = "Greater goes first, -100 to 100 (0)") \
  TEXT(isolation, "auto", .kind = SettingKind::choice, .choices = kIsolations, \
       .option = "isolation", .argument = "auto|shared|isolated", \
       .help = "Isolated: its programs share no context with others; the GPU switches between them by turns") \
  NUMBER(memory_min, 0, .kind = SettingKind::bytes, .least = 0, .greatest = kEndless, \
         .option = "memory-min", .argument = "SIZE", \
         .help = "Device memory of each GPU that is kept for it: others are refused what it has not used of that", \
         .per_gpu = &SliceSettings::memory_min_per_gpu) \
  TEXT(memory_min_per_gpu, "none", .kind = SettingKind::bytes_per_gpu) \
  LIMIT(memory_max, memory_unlimited, .kind = SettingKind::bytes, .least = 0, .greatest = kEndless, .on_root = true, \
        .option = "memory-max", .argument = "SIZE|none", \
        .help = "Device memory of each GPU for all its programs together, such as 16G", \
        .per_gpu = &SliceSettings::memory_max_per_gpu) \
  TEXT(memory_max_per_gpu, "none", .kind = SettingKind::bytes_per_gpu, .on_root = true) \
  LIMIT(memory_high, memory_high_unlimited, .kind = SettingKind::bytes, .least = 0, .greatest = kEndless, \
        .on_root = true, .option = "memory-high", .argument = "SIZE|none", \
        .help = "Above it each allocation waits, the longer the further above, 100 ms at most", \
        .per_gpu = &SliceSettings::memory_high_per_gpu) \
  TEXT(memory_high_per_gpu, "none", .kind = SettingKind::bytes_per_gpu, .on_root = true) \
  TEXT(latency, "none", .kind = SettingKind::latency, \
       .option = "latency", .argument = "TIME|MULTIPLE|none", \
       .help = "99 of 100 bursts are to take at most this, such as 5ms, or 2x of what they take alone; others yield") \
  TEXT(policy, "share", .kind = SettingKind::policy, .on_root = true, \
       .option = "policy", .argument = "NAME[:OPTION=VALUE]", \
       .help = "How the slice divides its SMs, or the GPU's time, among what is below it") \
  TEXT(frozen, "no", .kind = SettingKind::choice, .choices = kFrozen, .on_root = true, \
       .option = "frozen", .argument = "no|yes|swapped", \
       .help = "Frozen: its programs get no SMs until it is thawed (gpuctl freeze); swapped: nor GPU memory") \
  NUMBER(owner_uid, 0, .kind = SettingKind::user, .least = 0, .greatest = kIdGreatest, .on_root = true, \
         .option = "owner", .argument = "USER[:GROUP]", \
         .help = "Who may create slices below it, change them and run programs in them") \
  NUMBER(owner_gid, kNoGroup, .kind = SettingKind::group, .least = kNoGroup, .greatest = kIdGreatest, \
         .on_root = true) \
  TEXT(join, "none", .kind = SettingKind::join, \
       .option = "join", .argument = "user:NAME|group:NAME|unit:NAME|cgroup:PATH|exe:PATH,...|none", \
       .help = "Programs of that user, group, systemd unit, cgroup or file that name no slice are in this one") \
  TEXT(devices, "all", .kind = SettingKind::devices, .on_root = true, \
       .option = "devices", .argument = "GPU,...|all", \
       .help = "GPUs that its programs see, of those that slices above have, such as 0,2 or GPU-1b2c")
// clang-format on

/// Settings of a slice as requested, not yet validated. A setting that is absent stays as it is.
struct SliceSettings {
#define GPUCTL_NUMBER(name, ...) std::optional<std::int64_t> name;
#define GPUCTL_TEXT(name, ...) std::optional<std::string> name;
#define GPUCTL_LIMIT(name, lift, ...) \
  std::optional<std::int64_t> name;   \
  bool lift = false;
  GPUCTL_SLICE_SETTINGS(GPUCTL_NUMBER, GPUCTL_TEXT, GPUCTL_LIMIT)
#undef GPUCTL_NUMBER
#undef GPUCTL_TEXT
#undef GPUCTL_LIMIT

  friend bool operator==(const SliceSettings&, const SliceSettings&) = default;
};

/// The kind of a value. It decides how the value is read and written.
enum class SettingKind {
  sms,
  sms_per_gpu,
  milliseconds,
  number,
  bytes,
  bytes_per_gpu,
  choice,
  latency,
  quota,
  burst,
  policy,
  user,
  group,
  join,
  devices
};

inline constexpr std::int64_t kEndless = std::numeric_limits<std::int64_t>::max();  ///< as `greatest`: no bound

struct SliceSetting {
  std::string_view name;                                         ///< of the field and of the key in gpuctl.toml
  std::optional<std::int64_t> SliceSettings::*number = nullptr;  ///< the field: this ...
  std::optional<std::string> SliceSettings::*text = nullptr;     ///< ... or this
  bool SliceSettings::*lifted = nullptr;                         ///< the second field of a LIMIT, and its name
  std::string_view lift = {};
  std::int64_t number_default = 0;
  std::string_view text_default = {};

  SettingKind kind;
  std::span<const std::string_view> choices = {};  ///< all values of a choice
  std::int64_t least = 0, greatest = 0;            ///< of a number
  bool on_root = false;                            ///< can be set on the root too
  const char* option = nullptr;                    ///< of gpuctl; null: the previous option takes this value too
  const char* argument = "";                       ///< name of its value in help: "SIZE|none"
  const char* example = "";                        ///< example of a value, for errors
  const char* help = "";
  std::optional<std::string> SliceSettings::*per_gpu = nullptr;  ///< of an amount: the field of what single GPUs have

  /// It is what single GPUs have instead of the amount before it. People write both as one (base/per_gpu.h).
  bool is_per_gpu() const { return kind == SettingKind::sms_per_gpu || kind == SettingKind::bytes_per_gpu; }
  AmountOf amount_of() const {
    return kind == SettingKind::bytes || kind == SettingKind::bytes_per_gpu ? AmountOf::bytes : AmountOf::sms;
  }
};

#define GPUCTL_NUMBER(name_, fallback, ...) \
  SliceSetting{.name = #name_, .number = &SliceSettings::name_, .number_default = fallback, __VA_ARGS__},
#define GPUCTL_TEXT(name_, fallback, ...) \
  SliceSetting{.name = #name_, .text = &SliceSettings::name_, .text_default = fallback, __VA_ARGS__},
#define GPUCTL_LIMIT(name_, lift_, ...) \
  SliceSetting{                         \
      .name = #name_, .number = &SliceSettings::name_, .lifted = &SliceSettings::lift_, .lift = #lift_, __VA_ARGS__},
inline constexpr std::array kSliceSettings{GPUCTL_SLICE_SETTINGS(GPUCTL_NUMBER, GPUCTL_TEXT, GPUCTL_LIMIT)};
#undef GPUCTL_NUMBER
#undef GPUCTL_TEXT
#undef GPUCTL_LIMIT

/// Whether `settings` has a value for it.
inline bool is_given(const SliceSetting& setting, const SliceSettings& settings) {
  return (setting.number != nullptr && (settings.*setting.number).has_value()) ||
         (setting.text != nullptr && (settings.*setting.text).has_value()) ||
         (setting.lifted != nullptr && settings.*setting.lifted);
}

/// Removes its value from `settings`; of an amount, that of single GPUs too.
inline void drop(const SliceSetting& setting, SliceSettings& settings) {
  if (setting.number != nullptr) (settings.*setting.number).reset();
  if (setting.text != nullptr) (settings.*setting.text).reset();
  if (setting.lifted != nullptr) settings.*setting.lifted = false;
  if (setting.per_gpu != nullptr) (settings.*setting.per_gpu).reset();
}

/// Whether it is an amount that single GPUs have otherwise.
inline bool differs_by_gpu(const SliceSetting& setting, const SliceSettings& settings) {
  return setting.per_gpu != nullptr && (settings.*setting.per_gpu).value_or(std::string(kSameOnEach)) != kSameOnEach;
}

/// An amount as people write it, with what single GPUs have: "8", "none", "8,1:16".
inline std::string amount_value(const SliceSetting& setting, const SliceSettings& settings) {
  const auto text = [&](std::int64_t number) {
    return setting.kind == SettingKind::bytes ? size_text(number) : std::to_string(number);
  };
  const std::optional<std::int64_t>& number = settings.*setting.number;
  const std::string fallback = setting.lifted != nullptr ? "none" : text(setting.number_default);
  return amount_text(number ? text(*number) : fallback, fallback,
                     (settings.*setting.per_gpu).value_or(std::string(kSameOnEach)));
}

/// Gives `setting`, an amount, the value in the form of per_gpu_form(). False: it is none.
inline bool give_amount(const SliceSetting& setting, std::string_view text, SliceSettings& settings) {
  const auto parsed = parse_per_gpu(text, setting.amount_of());
  if (!parsed || parsed->empty()) return false;
  const PerGpu::One& first = parsed->list().front();
  const bool plain = first.gpu.empty() && !first.amount.per_cent;
  const bool lifted = setting.lifted != nullptr && (!plain || first.amount.lifted);
  if (setting.lifted == nullptr && std::ranges::any_of(parsed->list(), &PerGpu::Amount::lifted, &PerGpu::One::amount))
    return false;
  drop(setting, settings);
  if (lifted)
    settings.*setting.lifted = true;
  else
    settings.*setting.number = plain ? first.amount.number : setting.number_default;
  const std::size_t comma = plain ? text.find(',') : 0;
  settings.*setting.per_gpu = comma == text.npos ? kSameOnEach : plain ? text.substr(comma + 1) : text;
  return true;
}

/// The row of that name, which must exist.
consteval const SliceSetting& slice_setting(std::string_view name) {
  for (const SliceSetting& setting : kSliceSettings)
    if (setting.name == name) return setting;
  throw std::logic_error("no such setting");
}

}  // namespace gpuctl
