#include "gpuctl/views/rewrite_file.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <utility>

#include "base/regular_file.h"
#include "base/replace_file.h"
#include "gpuctl/views/archive.h"
#include "ptx/container/image.h"

namespace gpuctl::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostTextBytes = std::size_t{256} << 20;     // of a file that is PTX
constexpr std::size_t kMostRewrittenBytes = std::size_t{4} << 30;  // of all that a file holds

/// A file in memory. Libraries of some GB are read as they are needed.
class MappedFile {
 public:
  static Result<MappedFile> open(const std::string& path) {
    const RegularFile file(path);
    if (const auto opened = file.opened(); !opened) return opened.error();
    const auto size = static_cast<std::size_t>(file.status().st_size);
    if (size == 0) return MappedFile();
    void* const at = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.fd(), 0);
    if (at == MAP_FAILED) return fail(path + ": cannot be read: " + std::strerror(errno));
    return MappedFile({static_cast<const std::byte*>(at), size});
  }
  MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
  ~MappedFile() {
    if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
  }

  ptx::Bytes bytes() const { return bytes_; }

 private:
  explicit MappedFile(ptx::Bytes bytes = {}) : bytes_(bytes) {}
  ptx::Bytes bytes_;
};

Result<std::vector<ptx::FatbinEntry>> entries_of(ptx::Bytes bytes) {
  if (is_archive(bytes)) return read_archive(bytes);
  if (bytes.size() > kMostTextBytes && !ptx::has_device_code(bytes))
    return fail("is no fatbin or ELF file with device code, and too long for PTX");
  return ptx::read_image(bytes);
}

std::string architecture(const ptx::FatbinEntry& entry) {
  if (entry.sm == 0) return "";
  return "sm_" + std::to_string(entry.sm) + (entry.suffix == '\0' ? "" : std::string(1, entry.suffix));
}

/// Replaces the file by a complete one; writes to a pipe or a terminal in place. Returns the reason if it failed.
std::optional<std::string> write_file(const std::string& path, const std::string& text) {
  const auto failed = [&](int error) { return path + ": cannot be written: " + std::strerror(error); };
  std::error_code ignored;
  if (!fs::exists(path, ignored) || fs::is_regular_file(path, ignored)) {
    const auto not_written = replace_file(path, text, path + ".new-" + std::to_string(::getpid()));
    return not_written ? std::optional(failed(not_written->error)) : std::nullopt;
  }
  errno = 0;
  std::ofstream file(path, std::ios::binary);
  file << text << std::flush;
  return file ? std::nullopt : std::optional(failed(errno != 0 ? errno : EIO));
}

}  // namespace

std::string form_name(ptx::Form form) {
  switch (form) {
    case ptx::Form::kPersistent:
      return "persistent";
    case ptx::Form::kOpaque:
      return "opaque";
  }
  return "?";
}

Result<RewrittenFile> rewrite_file(const std::string& path,
                                   const std::function<void(std::size_t, std::size_t)>& begin) {
  const Result<MappedFile> mapped = MappedFile::open(path);
  if (!mapped) return mapped.error();
  const ptx::Bytes image = mapped->bytes();
  const Result<std::vector<ptx::FatbinEntry>> entries = entries_of(image);
  if (!entries) return fail(path + ": " + entries.error().message);
  const bool is_text = entries->size() == 1 && entries->front().payload.size() == image.size();

  const auto modules =
      std::ranges::count_if(*entries, [](const ptx::FatbinEntry& e) { return e.kind == ptx::FatbinKind::kPtx; });

  RewrittenFile file;
  std::size_t size = 0;
  for (const ptx::FatbinEntry& entry : *entries) {
    if (entry.kind != ptx::FatbinKind::kPtx) {
      file.machine_code.push_back(architecture(entry) +
                                  (entry.kind == ptx::FatbinKind::kLtoIr ? " (link-time IR)" : ""));
      continue;
    }
    if (begin) begin(file.modules.size() + 1, static_cast<std::size_t>(modules));
    // "kernel.ptx:7:3: ..." if the file is PTX text; else the number of the module in it.
    const std::string number = std::to_string(file.modules.size() + 1);
    const std::string where = path + (is_text ? ":" : ": PTX " + number + " (" + architecture(entry) + "): ");
    const Result<std::string> text = ptx::ptx_text(entry);
    if (!text) return fail(where + (is_text ? " " : "") + text.error().message);
    Result<ptx::RewrittenText> rewritten = ptx::rewrite_text(*text);
    if (!rewritten) return fail(where + rewritten.error().message);
    if ((size += rewritten->text.size()) > kMostRewrittenBytes)
      return fail(path + ": holds more PTX than " + std::to_string(kMostRewrittenBytes >> 30) + " GiB");
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
