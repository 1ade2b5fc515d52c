#include "ptx/pass/words_behind.h"

#include <charconv>

#include "ptx/persistent_abi.h"

namespace gpuctl::ptx::pass {
namespace {

constexpr std::string_view kWords = "gpuslice_shared";
constexpr std::string_view kDeclaration = "  .shared .align 16 .b8 gpuslice_shared";
constexpr std::string_view kRegisters = "  .reg .b32 %gpuslice_words, %gpuslice_dynamic_size;\n";
/// Sets %gpuslice_words to the end of the words, which is the end of dynamic shared memory.
constexpr std::string_view kEnd =
    "  mov.u32 %gpuslice_words, gpuslice_dynamic;\n"
    "  mov.u32 %gpuslice_dynamic_size, %dynamic_smem_size;\n"
    "  add.u32 %gpuslice_words, %gpuslice_words, %gpuslice_dynamic_size;\n";
constexpr auto kBytes = static_cast<int>(kSharedWordsBytes);

}  // namespace

std::string put_words_behind(std::string_view worker) {
  std::string out;
  while (!worker.empty()) {
    const std::size_t end = worker.find('\n') + 1;
    const std::string_view line = worker.substr(0, end);
    worker.remove_prefix(end);
    const std::size_t at = line.find(kWords);
    if (line.starts_with(kDeclaration)) {
      out += kRegisters;
    } else if (at == line.npos) {
      out += line;
    } else if (const std::size_t plus = at + kWords.size(); line[plus] == '+') {  // [gpuslice_shared+N]
      int offset = 0;
      const char* rest = std::from_chars(line.data() + plus + 1, line.data() + line.size(), offset).ptr;
      out.append(kEnd).append(line.substr(0, at)).append("%gpuslice_words+").append(std::to_string(offset - kBytes));
      out.append(rest, line.data() + line.size());
    } else {  // mov.u32 REGISTER, gpuslice_shared;
      const std::size_t to = line.find('%');
      out.append(kEnd)
          .append("  sub.u32 ")
          .append(line.substr(to, at - to))
          .append("%gpuslice_words, ")
          .append(std::to_string(kBytes))
          .append(";\n");
    }
  }
  return out;
}

Item dynamic_shared_variable() {
  Variable variable;
  variable.specifiers = {".extern", ".shared", ".align", "16", ".b8"};
  Declarator name;
  name.name = "gpuslice_dynamic";
  name.dims = {std::nullopt};
  variable.names.push_back(std::move(name));
  decode_specifiers(variable);
  return variable;
}

}  // namespace gpuctl::ptx::pass
