#include "gpuctl/views/demangle.h"

#include <cxxabi.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <string_view>

#include "base/one_line.h"
#include "base/read_write.h"
#include "ipc/unique_fd.h"

namespace gpuctl::cli {

namespace {

/// Names up to this length cannot stand for much more than they are.
constexpr std::size_t kShort = 64;
/// Of the CPU, for all longer names together. In that time a name grows to some 100 MiB.
constexpr rlim_t kPatienceS = 1;
/// No table shows more of a name.
constexpr std::size_t kMostShown = 1024;

std::string demangle(const std::string& name) {
  // Without "_Z" the demangler would read "f" as the type float.
  if (!name.starts_with("_Z")) return name;
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status),
                                                    std::free);
  return status == 0 && text ? std::string(text.get()).substr(0, kMostShown) : name;
}

/// The child: a line for each name, as far as its time goes.
[[noreturn]] void write_demangled(const std::vector<std::string>& names, int pipe) {
  const rlimit time{kPatienceS, kPatienceS}, none{0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
  if (::setrlimit(RLIMIT_CPU, &time) == 0)
    for (const std::string& name : names)
      if (name.size() > kShort && !write_all(pipe, one_line(demangle(name)) + "\n")) break;
  ::_exit(0);
}

}  // namespace

std::vector<std::string> demangled(const std::vector<std::string>& names) {
  std::vector<std::string> shown = names;
  for (std::string& name : shown)
    if (name.size() <= kShort) name = demangle(name);
  std::array<int, 2> ends{};
  if (std::ranges::none_of(names, [](const auto& name) { return name.size() > kShort; }) || ::pipe(ends.data()) != 0)
    return shown;
  const ipc::UniqueFd from(ends[0]);
  ipc::UniqueFd to(ends[1]);
  const pid_t child = ::fork();
  if (child == 0) write_demangled(names, to.get());
  to.reset();
  if (child < 0) return shown;
  std::string text;  // the last line has no end if the child's time was over
  read_pieces(from.get(), [&](std::string_view piece) { return text.append(piece), true; });
  ::waitpid(child, nullptr, 0);
  std::string_view left = text;
  for (std::string& name : shown) {
    if (name.size() <= kShort) continue;
    const std::size_t end = left.find('\n');
    if (end == left.npos) break;
    name = left.substr(0, end);
    left.remove_prefix(end + 1);
  }
  return shown;
}

}  // namespace gpuctl::cli
