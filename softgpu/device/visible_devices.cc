#include "softgpu/device/visible_devices.h"

#include <strings.h>

#include <algorithm>
#include <charconv>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>

#include "softgpu/device/device.h"

namespace gpuctl::softgpu {
namespace {

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

/// The device whose UUID begins with this text, if there is exactly one.
std::optional<std::size_t> by_uuid(std::string_view beginning, std::size_t count) {
  std::optional<std::size_t> found;
  for (std::size_t number = 0; number < count; ++number) {
    const std::string uuid = device_uuid_text(number);
    if (beginning.size() > uuid.size() || strncasecmp(uuid.data(), beginning.data(), beginning.size()) != 0) continue;
    if (found) return std::nullopt;
    found = number;
  }
  return found;
}

std::optional<std::size_t> named(std::string_view item, std::size_t count) {
  if (item.starts_with("GPU-")) return by_uuid(item, count);
  std::size_t number = 0;
  const char* end = item.data() + item.size();
  const auto [stop, error] = std::from_chars(item.data(), end, number);
  if (error != std::errc{} || stop != end || number >= count) return std::nullopt;
  return number;
}

}  // namespace

std::vector<std::size_t> visible_devices(const char* list, std::size_t count) {
  std::vector<std::size_t> numbers;
  if (list == nullptr) {
    numbers.resize(count);
    std::iota(numbers.begin(), numbers.end(), 0);
    return numbers;
  }
  for (std::string_view rest = list;;) {
    const std::size_t comma = rest.find(',');
    const std::optional<std::size_t> number = named(trimmed(rest.substr(0, comma)), count);
    if (!number) return numbers;
    if (std::find(numbers.begin(), numbers.end(), *number) != numbers.end()) return {};
    numbers.push_back(*number);
    if (comma == std::string_view::npos) return numbers;
    rest.remove_prefix(comma + 1);
  }
}

}  // namespace gpuctl::softgpu
