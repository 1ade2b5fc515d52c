#include "slicefile/drop_in.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/read_write.h"
#include "base/regular_file.h"
#include "base/replace_file.h"

namespace gpuctl::slicefile {
namespace {

namespace fs = std::filesystem;

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
  return directory + '/' + name + ".toml";
}

Result<void> write_drop_in(const std::string& file, const std::string& text) {
  std::error_code error;
  if (fs::exists(file, error) && !is_saved(file))
    return fail(file + ": was not written by \"gpuctl save\"; rename it or remove it first");
  fs::create_directories(fs::path(file).parent_path(), error);
  const auto not_written =
      replace_file(file, std::string(kSavedLine) + text, file + ".new-" + std::to_string(::getpid()), 0644);
  if (not_written) return failed(file, not_written->error);
  return {};
}

std::vector<std::string> saved_drop_ins(const std::string& directory) {
  std::vector<std::string> files;
  std::error_code error;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end; entry.increment(error))
    if (entry->path().extension() == ".toml" && is_saved(entry->path())) files.push_back(entry->path());
  std::ranges::sort(files);
  return files;
}

}  // namespace gpuctl::slicefile
