// Device printf: the arguments stand in a buffer, each at its natural alignment of 4 or 8 bytes.
#include <cstdio>
#include <cstring>

#include "softgpu/engine/block.h"

namespace gpuctl::softgpu::engine {
namespace {

class Arguments {
 public:
  explicit Arguments(const std::byte* at) : at_(at) {}
  template <class T>
  T next() {
    offset_ = (offset_ + sizeof(T) - 1) / sizeof(T) * sizeof(T);
    T value{};
    if (at_ != nullptr) std::memcpy(&value, at_ + offset_, sizeof(T));
    offset_ += sizeof(T);
    return value;
  }

 private:
  const std::byte* at_;
  std::size_t offset_ = 0;
};

template <class... T>
std::string formatted(const std::string& spec, T... values) {
  char text[512];
  const int n = std::snprintf(text, sizeof text, spec.c_str(), values...);
  return n < 0 ? std::string() : std::string(text, std::min<std::size_t>(static_cast<std::size_t>(n), sizeof text - 1));
}

}  // namespace

std::string format_print(const char* format, const std::byte* buffer) {
  Arguments arguments(buffer);
  std::string text;
  for (const char* p = format; *p != 0; ++p) {
    if (*p != '%') {
      text += *p;
      continue;
    }
    std::string spec = "%";
    for (++p; *p != 0 && std::strchr("-+ #0123456789.*", *p) != nullptr; ++p) {
      if (*p == '*')
        spec += std::to_string(arguments.next<std::int32_t>());
      else
        spec += *p;
    }
    int longs = 0;
    for (; *p != 0 && std::strchr("hljztL", *p) != nullptr; ++p) longs += *p != 'h';
    switch (*p) {
      case 0:
        return text + spec;
      case '%':
        text += '%';
        break;
      case 'd':
      case 'i':
        text += longs > 0 ? formatted(spec + "lld", static_cast<long long>(arguments.next<std::int64_t>()))
                          : formatted(spec + "d", arguments.next<std::int32_t>());
        break;
      case 'u':
      case 'x':
      case 'X':
      case 'o':
        text += longs > 0
                    ? formatted(spec + "ll" + *p, static_cast<unsigned long long>(arguments.next<std::uint64_t>()))
                    : formatted(spec + *p, arguments.next<std::uint32_t>());
        break;
      case 'c':
        text += formatted(spec + "c", arguments.next<std::int32_t>());
        break;
      case 'e':
      case 'E':
      case 'f':
      case 'F':
      case 'g':
      case 'G':
      case 'a':
      case 'A':
        text += formatted(spec + *p, arguments.next<double>());
        break;
      case 'p':
        text += formatted("%p", reinterpret_cast<void*>(arguments.next<std::uint64_t>()));
        break;
      case 's': {
        const char* s = reinterpret_cast<const char*>(arguments.next<std::uint64_t>());
        text += formatted(spec + "s", s != nullptr ? s : "(null)");
        break;
      }
      default:
        text += spec + *p;
    }
  }
  return text;
}

}  // namespace gpuctl::softgpu::engine
