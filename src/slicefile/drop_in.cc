#include "slicefile/drop_in.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "base/read_write.h"
#include "base/regular_file.h"
#include "base/replace_file.h"

// The functions become part of this file: no library is needed.
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace gpuctl::slicefile {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kEnding = ".toml";
constexpr std::size_t kMostOfName = NAME_MAX - kEnding.size();  // bytes

/// A name of at most kMostOfName for a longer one. No slice's own has "++", so it is that of no other slice.
std::string shortened(const std::string& name) {
  const XXH128_hash_t hash = XXH3_128bits(name.data(), name.size());
  char digits[35];
  std::snprintf(digits, sizeof digits, "++%016llx%016llx", static_cast<unsigned long long>(hash.high64),
                static_cast<unsigned long long>(hash.low64));
  return name.substr(0, kMostOfName - (sizeof digits - 1)) + digits;
}

bool is_saved(const std::string& file) {
  const RegularFile opened(file);
  if (!opened.opened()) return false;
  std::string begin;
  const auto take = [&](std::string_view piece) { return (begin += piece).size() < kSavedLine.size(); };
  static_cast<void>(read_pieces(opened.fd(), take));
  return begin.starts_with(kSavedLine);
}

Error failed(const std::string& file, int error) {
  return fail(file + ": cannot be written: " + std::strerror(error) + (error == EACCES ? "; run this as root" : ""));
}

}  // namespace

std::string drop_in_file(const std::string& directory, const std::string& path) {
  std::string name = path;
  std::ranges::replace(name, '/', '+');
  if (name.size() > kMostOfName) name = shortened(name);
  return (directory + '/' + name).append(kEnding);
}

Result<void> write_drop_ins(const std::vector<DropIn>& drop_ins) {
  std::error_code error;
  for (const DropIn& one : drop_ins)
    if (fs::exists(one.file, error) && !is_saved(one.file))
      return fail(one.file + ": was not written by \"gpuctl save\"; rename it or remove it first");
  for (const DropIn& one : drop_ins) {
    const fs::path directory = fs::path(one.file).parent_path();
    if (fs::create_directories(directory, error); error) return failed(one.file, error.value());
    // Not the file's name with an ending, which may be too long.
    const std::string unfinished = directory / (".new-" + std::to_string(::getpid()));
    if (const auto not_written = replace_file(one.file, std::string(kSavedLine) + one.text, unfinished, 0644))
      return failed(one.file, not_written->error);
  }
  return {};
}

std::vector<std::string> saved_drop_ins(const std::string& directory) {
  std::vector<std::string> files;
  std::error_code error;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end; entry.increment(error))
    if (entry->path().extension() == kEnding && is_saved(entry->path())) files.push_back(entry->path());
  std::ranges::sort(files);
  return files;
}

}  // namespace gpuctl::slicefile
