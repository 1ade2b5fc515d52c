#include "libgpuslice/image/compile_options.h"

#include <algorithm>
#include <cstdlib>

namespace gpuslice {

namespace {

enum class Kind { kIgnored, kIgnoredValue, kOutput, kRegisters, kMustBeTrue, kMustBe3 };

struct Option {
  std::string_view name, short_name;
  Kind kind;
};

/// Options that do not matter here, and options that do. --fmad=false and optimization levels decide whether a
/// multiplication and an addition are rounded once, and the driver cannot be asked for them.
constexpr Option kOptions[] = {
    {"output-file", "o", Kind::kOutput},
    {"maxrregcount", "maxrregcount", Kind::kRegisters},
    {"fmad", "fmad", Kind::kMustBeTrue},
    {"opt-level", "O", Kind::kMustBe3},
    {"gpu-name", "arch", Kind::kIgnoredValue},
    {"machine", "m", Kind::kIgnoredValue},
    {"verbose", "v", Kind::kIgnored},
    {"disable-warnings", "w", Kind::kIgnored},
    {"generate-line-info", "lineinfo", Kind::kIgnored},
    {"suppress-debug-info", "suppress-debug-info", Kind::kIgnored},
    {"warn-on-spills", "warn-spills", Kind::kIgnored},
    {"warn-on-local-memory-usage", "warn-lmem-usage", Kind::kIgnored},
    {"warn-on-double-precision-use", "warn-double-usage", Kind::kIgnored},
};

const Option* find_option(std::string_view name) {
  for (const Option& option : kOptions) {
    if (name == option.name || name == option.short_name) return &option;
  }
  return nullptr;
}

/// Returns false if the output must not be noted.
bool take(PtxasRun& run, const Option& option, const std::string& value) {
  switch (option.kind) {
    case Kind::kIgnored:
    case Kind::kIgnoredValue:
      return true;
    case Kind::kOutput:
      run.output = value;
      return true;
    case Kind::kRegisters:
      run.max_registers = std::atoi(value.c_str());
      return run.max_registers > 0;
    case Kind::kMustBeTrue:
      return value == "true";
    case Kind::kMustBe3:
      return value == "3";
  }
  return false;
}

}  // namespace

std::optional<int> fatbin_register_limit(std::string_view options) {
  int limit = 0;
  while (!options.empty()) {
    const std::size_t end = std::min(options.find(' '), options.size());
    std::string_view option = options.substr(0, end);
    options.remove_prefix(std::min(end + 1, options.size()));
    while (option.starts_with("--")) option.remove_prefix(1);
    if (option.empty()) continue;
    constexpr std::string_view kLimit = "-maxrregcount=";
    if (option.starts_with(kLimit)) {
      limit = std::atoi(std::string(option.substr(kLimit.size())).c_str());
    } else if (option != "-O3" && option != "-v" && option != "-lineinfo" && option != "-generate-line-info" &&
               option != "-w") {
      return std::nullopt;
    }
  }
  return limit;
}

std::optional<int> nvrtc_register_limit(std::span<const char* const> options) {
  int limit = 0;
  for (std::size_t i = 0; i < options.size(); ++i) {
    std::string_view option = options[i] ? options[i] : "";
    while (option.starts_with('-')) option.remove_prefix(1);
    const std::size_t equals = option.find('=');
    const std::string_view name = option.substr(0, equals);
    if (name == "maxrregcount") {
      const char* value = equals != option.npos    ? option.data() + equals + 1
                          : i + 1 < options.size() ? options[++i]
                                                   : nullptr;
      if (!value) return std::nullopt;
      limit = std::atoi(value);
    } else if (name == "device-debug" || name == "G" || name == "ptxas-options" || name.starts_with("Xptxas")) {
      return std::nullopt;
    }
  }
  return limit;
}

std::optional<PtxasRun> read_ptxas_command(std::span<const std::string> command) {
  PtxasRun run;
  for (std::size_t i = 1; i < command.size(); ++i) {
    std::string_view word = command[i];
    if (!word.starts_with('-')) {
      if (!run.input.empty() || word.starts_with('@')) return std::nullopt;
      run.input = word;
      continue;
    }
    word.remove_prefix(word.starts_with("--") ? 2 : 1);
    const std::size_t equals = word.find('=');
    const Option* option = find_option(word.substr(0, equals));
    std::string value(equals == word.npos ? "" : word.substr(equals + 1));
    if (!option && word.size() == 2 && word[0] == 'O') {  // -O3
      option = find_option("O");
      value = word.substr(1);
    } else if (option && option->kind != Kind::kIgnored && equals == word.npos) {
      if (++i == command.size()) return std::nullopt;
      value = command[i];
    }
    if (!option || !take(run, *option, value)) return std::nullopt;
  }
  if (run.input.empty()) return std::nullopt;
  if (run.output.empty()) run.output = "elf.o";  // ptxas's default
  return run;
}

}  // namespace gpuslice
