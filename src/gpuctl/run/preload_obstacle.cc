#include "gpuctl/run/preload_obstacle.h"

#include <elf.h>
#include <sys/prctl.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string_view>

#include "base/regular_file.h"

namespace gpuctl::cli {
namespace {

namespace fs = std::filesystem;

constexpr int kMostInterpreters = 5;  // of interpreters, as the kernel has it
constexpr std::size_t kLineBytes = 256;
constexpr std::size_t kMostHeaders = 4096;

template <class T>
std::optional<T> at(const RegularFile& file, std::uint64_t offset) {
  T value;
  if (::pread(file.fd(), &value, sizeof value, static_cast<off_t>(offset)) != static_cast<ssize_t>(sizeof value))
    return std::nullopt;
  return value;
}

std::string text_at(const RegularFile& file, std::uint64_t offset) {
  std::array<char, kLineBytes> text{};
  const ssize_t got = ::pread(file.fd(), text.data(), text.size(), static_cast<off_t>(offset));
  return {text.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0))};
}

/// The path of its dynamic linker: "" if it has none, nothing if the file is damaged.
std::optional<std::string> linker_of(const RegularFile& file, const Elf64_Ehdr& header) {
  for (std::uint64_t i = 0; i < std::min<std::uint64_t>(header.e_phnum, kMostHeaders); ++i) {
    const auto segment = at<Elf64_Phdr>(file, header.e_phoff + i * sizeof(Elf64_Phdr));
    if (!segment) return std::nullopt;
    if (segment->p_type == PT_INTERP) return text_at(file, segment->p_offset).c_str();
  }
  return "";
}

/// Whether it gets more rights than its caller has. ld.so then ignores paths in LD_PRELOAD.
std::string rights_of(const RegularFile& file) {
  struct statvfs mounted {};
  if (::prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1) return {};
  if (::fstatvfs(file.fd(), &mounted) == 0 && (mounted.f_flag & ST_NOSUID) != 0) return {};
  const struct stat& status = file.status();
  if ((status.st_mode & S_ISUID) != 0 && status.st_uid != ::getuid()) return "is set-uid";
  if ((status.st_mode & S_ISGID) != 0 && (status.st_mode & S_IXGRP) != 0 && status.st_gid != ::getgid())
    return "is set-gid";
  if (::getuid() != 0 && ::fgetxattr(file.fd(), "security.capability", nullptr, 0) > 0) return "has file capabilities";
  return {};
}

std::string elf_obstacle(const RegularFile& file, const std::string& path) {
  const RegularFile own("/proc/self/exe");
  const auto header = at<Elf64_Ehdr>(file, 0), like = at<Elf64_Ehdr>(own, 0);
  if (!header || !like) return {};
  if (header->e_ident[EI_CLASS] != like->e_ident[EI_CLASS] || header->e_machine != like->e_machine)
    return "is for another kind of machine";
  if (std::string rights = rights_of(file); !rights.empty()) return rights;
  const auto linker = linker_of(file, *header), own_linker = linker_of(own, *like);
  if (!linker || !own_linker) return {};
  std::error_code ignored;
  // Called as a program, a dynamic linker preloads too.
  if (linker->empty())
    return fs::canonical(path, ignored).filename().string().starts_with("ld-") ? "" : "is linked statically";
  if (fs::path(*linker).filename() == fs::path(*own_linker).filename()) return {};
  return "has another dynamic linker, " + *linker;
}

/// What the first line of a script names, which begins so; empty: it is none.
std::string interpreter_in(std::string_view begin) {
  if (!begin.starts_with("#!")) return {};
  begin = begin.substr(0, begin.find('\n'));
  const std::size_t first = begin.find_first_not_of(" \t", 2);
  if (first == begin.npos) return {};
  return std::string(begin.substr(first, begin.find_first_of(" \t", first) - first));
}

bool is_elf(std::string_view begin) {
  return begin.starts_with(std::string_view(ELFMAG, SELFMAG));
}

/// `what` is "it" or "its interpreter PATH".
std::string obstacle(const std::string& path, const std::string& what, int depth) {
  const RegularFile file(path);
  if (!file.opened() || depth > kMostInterpreters) return {};
  const std::string begin = text_at(file, 0);
  if (is_elf(begin)) {
    const std::string found = elf_obstacle(file, path);
    return found.empty() ? "" : what + ' ' + found;
  }
  const std::string interpreter = interpreter_in(begin);
  return interpreter.empty() ? "" : obstacle(interpreter, "its interpreter " + interpreter, depth + 1);
}

std::string in_path(const std::string& program) {
  if (program.find('/') != program.npos) return program;
  const char* variable = std::getenv("PATH");
  const std::string list = variable != nullptr ? variable : "/bin:/usr/bin";
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(':', begin), list.size());
    const std::string path = (end == begin ? "." : list.substr(begin, end - begin)) + '/' + program;
    if (::access(path.c_str(), X_OK) == 0) return path;
    begin = end + 1;
  }
  return {};
}

}  // namespace

std::string preload_obstacle(const std::string& program) {
  return obstacle(in_path(program), "it", 0);
}

std::string file_run_by(const std::string& program) {
  std::string path = in_path(program);
  for (int depth = 0; depth <= kMostInterpreters && !path.empty(); ++depth) {
    const RegularFile file(path);
    if (!file.opened()) break;
    const std::string begin = text_at(file, 0);
    std::error_code failed;
    if (is_elf(begin)) return fs::canonical(path, failed).string();
    path = interpreter_in(begin);
  }
  return {};
}

}  // namespace gpuctl::cli
