#include "gpuctl/views/rewrite_file.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>

#include "ptx/container/image.h"

namespace gpuctl::cli {
namespace {

namespace fs = std::filesystem;

Result<std::string> read_all(const std::string& path) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::string bytes;
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) return fail(path + ": it is a directory");
  if (file) bytes.assign(std::istreambuf_iterator<char>(file), {});
  if (!file.is_open() || file.bad()) return fail(path + ": cannot be read: " + std::strerror(errno ? errno : EIO));
  return bytes;
}

std::string architecture(const ptx::FatbinEntry& entry) {
  if (entry.sm == 0) return "";
  return "sm_" + std::to_string(entry.sm) + (entry.suffix == '\0' ? "" : std::string(1, entry.suffix));
}

/// Replaces the file by a complete one; writes to a pipe or a terminal in place. Returns the reason if it failed.
std::optional<std::string> write_file(const std::string& path, const std::string& text) {
  std::error_code error;
  const bool in_place = fs::exists(path, error) && !fs::is_regular_file(path, error);
  const std::string unfinished = in_place ? path : path + ".new-" + std::to_string(::getpid());
  errno = 0;
  std::ofstream file(unfinished, std::ios::binary);
  file << text << std::flush;
  if (!file) {
    const std::string reason = std::strerror(errno ? errno : EIO);
    if (!in_place) fs::remove(unfinished, error);
    return path + ": cannot be written: " + reason;
  }
  file.close();
  if (in_place) return std::nullopt;
  fs::rename(unfinished, path, error);
  if (!error) return std::nullopt;
  const std::string reason = error.message();
  fs::remove(unfinished, error);
  return path + ": cannot be written: " + reason;
}

}  // namespace

std::string form_name(ptx::Form form) {
  switch (form) {
    case ptx::Form::kPersistent:
      return "persistent";
    case ptx::Form::kGuarded:
      return "guarded";
    case ptx::Form::kSliced:
      return "sliced";
    case ptx::Form::kOpaque:
      return "opaque";
  }
  return "?";
}

Result<RewrittenFile> rewrite_file(const std::string& path, ptx::Wanted wanted) {
  const Result<std::string> bytes = read_all(path);
  if (!bytes) return bytes.error();
  const auto image = std::as_bytes(std::span(*bytes));
  const Result<std::vector<ptx::FatbinEntry>> entries = ptx::read_image(image);
  if (!entries) return fail(path + ": " + entries.error().message);
  const bool is_text = entries->size() == 1 && entries->front().payload.size() == image.size();

  RewrittenFile file;
  for (const ptx::FatbinEntry& entry : *entries) {
    if (entry.kind != ptx::FatbinKind::kPtx) {
      file.machine_code.push_back(architecture(entry) +
                                  (entry.kind == ptx::FatbinKind::kLtoIr ? " (link-time IR)" : ""));
      continue;
    }
    // "kernel.ptx:7:3: ..." if the file is PTX text; else the number of the module in it.
    const std::string number = std::to_string(file.modules.size() + 1);
    const std::string where = path + (is_text ? ":" : ": PTX " + number + " (" + architecture(entry) + "): ");
    const Result<std::string> text = ptx::ptx_text(entry);
    if (!text) return fail(where + (is_text ? " " : "") + text.error().message);
    Result<ptx::RewrittenText> rewritten = ptx::rewrite_text(*text, wanted);
    if (!rewritten) return fail(where + rewritten.error().message);
    file.modules.push_back(
        {architecture(entry), entry.options, std::move(rewritten->text), std::move(rewritten->entries)});
  }
  return file;
}

Result<std::vector<std::string>> write_modules(const RewrittenFile& file, const std::string& out) {
  std::error_code error;
  const bool several = file.modules.size() > 1;
  if (several && fs::exists(out, error) && !fs::is_directory(out, error))
    return fail(out + ": is a file, and there are " + std::to_string(file.modules.size()) +
                " modules to write; name a directory");
  if (several && !fs::is_directory(out, error) && !fs::create_directory(out, error))
    return fail(out + ": cannot be made: " + error.message());
  const bool into_directory = fs::is_directory(out, error);
  std::vector<std::string> paths;
  for (const RewrittenModule& module : file.modules) {
    const std::string name = std::to_string(paths.size() + 1) + '.' + module.architecture + ".ptx";
    const std::string path = into_directory ? (fs::path(out) / name).string() : out;
    if (const auto failed = write_file(path, module.text)) return fail(*failed);
    paths.push_back(path);
  }
  return paths;
}

}  // namespace gpuctl::cli
