// gpuslice-nvcc: becomes nvcc, with arguments added (command.h).
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "base/installed.h"
#include "gpuslice-nvcc/command.h"

namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

Words split_words(const std::string& text) {
  std::istringstream stream(text);
  return Words(std::istream_iterator<std::string>(stream), {});
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::optional<Words> read_options_file(const std::string& path) {
  std::ifstream file(path);
  if (!file) return std::nullopt;
  return split_words(std::string(std::istreambuf_iterator<char>(file), {}));
}

/// The standard output of a program, without its errors.
std::string output_of(const std::string& command) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(command.c_str(), "r"), ::pclose);
  std::string text;
  char buffer[4096];
  while (pipe != nullptr) {
    const std::size_t count = std::fread(buffer, 1, sizeof buffer, pipe.get());
    if (count == 0) break;
    text.append(buffer, count);
  }
  return text;
}

std::string quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

/// "native": the architectures that nvcc would compile for. Otherwise the lowest that nvcc knows: its PTX runs on all
/// GPUs for which nvcc can compile.
Words virtual_architectures(const std::string& nvcc, const std::string& architecture) {
  if (architecture != "native") {
    Words all = split_words(output_of(quoted(nvcc) + " --list-gpu-arch 2>/dev/null"));
    if (all.size() > 1) all.resize(1);
    return all;
  }
  Words found;
  const Words words = split_words(output_of(quoted(nvcc) + " -arch=native --dryrun -c -x cu /dev/null 2>&1"));
  for (std::size_t i = 1; i < words.size(); ++i)
    if (words[i - 1] == "-arch" && words[i].starts_with("compute_")) found.push_back(words[i]);
  return found;
}

/// In a build tree the parts built there, otherwise the installed ones. Headers in /usr/include must have no option: it
/// would change the order in which the compiler searches.
gpuctl::nvcc::Places find_places() {
  std::error_code ignored;
  const fs::path self = gpuctl::own_executable();
  const fs::path built = (self.parent_path() / "../libgpuslice").lexically_normal();
  if (fs::exists(built / "libgpuslice.so", ignored)) return {built / "include", built / "libgpuslice.so"};
  const fs::path include =
      gpuctl::installed(self, GPUSLICE_BINDIR, GPUSLICE_INCLUDEDIR, "gpuslice/gpuslice.h").parent_path().parent_path();
  const bool searched = include == "/usr/include" || include == "/usr/local/include";
  return {searched ? "" : include.string(),
          gpuctl::installed(self, GPUSLICE_BINDIR, GPUSLICE_LIBDIR, "libgpuslice.so")};
}

}  // namespace

int main(int argc, char** argv) {
  const std::string chosen = variable("GPUSLICE_NVCC");
  const std::string nvcc = chosen.empty() ? "nvcc" : chosen;
  const gpuctl::nvcc::Surroundings surroundings{
      find_places(), split_words(variable("NVCC_PREPEND_FLAGS")), split_words(variable("NVCC_APPEND_FLAGS")),
      read_options_file, [&](const std::string& name) { return virtual_architectures(nvcc, name); }};
  Words arguments = gpuctl::nvcc::complete({argv + (argc > 0 ? 1 : 0), argv + argc}, surroundings);

  std::vector<char*> command{const_cast<char*>(nvcc.c_str())};
  for (std::string& argument : arguments) command.push_back(argument.data());
  command.push_back(nullptr);
  ::execvp(command[0], command.data());
  const int error = errno;
  std::fprintf(stderr, "gpuslice-nvcc: cannot execute '%s': %s%s\n", nvcc.c_str(), std::strerror(error),
               chosen.empty() ? "; put it into PATH or set GPUSLICE_NVCC" : "");
  return error == ENOENT ? 127 : 126;
}
