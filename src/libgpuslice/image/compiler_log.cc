#include "libgpuslice/image/compiler_log.h"

#include <algorithm>
#include <charconv>
#include <optional>

namespace gpuslice {

namespace {

constexpr std::string_view kEntry = "Compiling entry function '";
constexpr std::string_view kProperties = "Function properties for ";
constexpr std::string_view kStack = " bytes stack frame";
constexpr std::string_view kUsed = ": Used ";

std::optional<int> number_at(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  int number = 0;
  return std::from_chars(text.data(), text.data() + text.size(), number).ec == std::errc() ? std::optional(number)
                                                                                           : std::nullopt;
}

}  // namespace

std::map<std::string, CompiledKernel> read_compiler_log(std::string_view log) {
  std::map<std::string, CompiledKernel> kernels;
  CompiledKernel* kernel = nullptr;
  bool own_properties = false;  // the log has the properties of functions that it calls too
  std::string name;
  while (!log.empty()) {
    const std::size_t end = std::min(log.find('\n'), log.size());
    const std::string_view line = log.substr(0, end);
    log.remove_prefix(std::min(end + 1, log.size()));
    if (const std::size_t at = line.find(kEntry); at != line.npos) {
      const std::string_view rest = line.substr(at + kEntry.size());
      name = rest.substr(0, rest.find('\''));
      kernel = nullptr;
      own_properties = false;
    } else if (const std::size_t of = line.find(kProperties); of != line.npos) {
      own_properties = line.substr(of + kProperties.size()) == name;
    } else if (const std::size_t stack = line.find(kStack); stack != line.npos && own_properties) {
      if (const std::optional<int> bytes = number_at(line)) (kernel = &kernels[name])->local_bytes = *bytes;
    } else if (const std::size_t used = line.find(kUsed); used != line.npos && kernel) {
      if (const std::optional<int> registers = number_at(line.substr(used + kUsed.size())))
        kernel->registers = *registers;
    }
  }
  std::erase_if(kernels, [](const auto& one) { return one.second.registers == 0; });
  return kernels;
}

}  // namespace gpuslice
