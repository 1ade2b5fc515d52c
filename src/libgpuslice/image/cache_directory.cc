#include "libgpuslice/image/cache_directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <vector>

#include "base/read_write.h"
#include "ipc/unique_fd.h"
#include "libgpuslice/base/environment.h"

namespace gpuslice {

namespace {

using gpuctl::ipc::UniqueFd;

/// The last character is the version of the header and of the hash that names the files.
constexpr char kMagic[8] = {'g', 'p', 'u', 's', 'l', 'i', 'c', '2'};
constexpr std::string_view kUnfinished = "unfinished.";
/// Older unfinished files belong to a writer that died, since writing takes milliseconds.
constexpr std::time_t kUnfinishedForS = 3600;

struct Header {
  char magic[8];
  ContentHash key;
  ContentHash body;
};
static_assert(sizeof(Header) == 56);

/// An invalid descriptor if the directory does not exist, is not this user's, or is open to others. A link is none:
/// whoever made it would say which of this user's directories is emptied.
UniqueFd open_private(const std::string& path) {
  UniqueFd directory(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat about;
  if (directory.get() < 0 || fstat(directory.get(), &about) != 0 || about.st_uid != geteuid() ||
      (about.st_mode & 077) != 0)
    return UniqueFd();
  return directory;
}

/// Whether put() or take_turn() may have given a file this name: nothing else is removed.
bool is_made_here(std::string_view name) {
  if (name.starts_with(kUnfinished)) return true;
  const std::size_t digits = to_text(ContentHash()).size();
  const auto is_digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  return name.size() > digits &&
         std::all_of(name.begin(), name.begin() + static_cast<std::ptrdiff_t>(digits), is_digit) && name[digits] == '.';
}

/// Makes the missing directories of a path, for this user alone.
void make_directories(const std::string& path) {
  for (std::size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    if (mkdir(path.substr(0, end).c_str(), 0700) != 0 && errno != EEXIST) return;
    if (end == path.npos) return;
  }
}

std::string user_directory() {
  const char* wanted = environment("GPUSLICE_CACHE");
  if (wanted && std::strcmp(wanted, "0") == 0) return {};
  const char* cache = environment("XDG_CACHE_HOME");
  if (cache && *cache == '/') return std::string(cache) + "/gpuctl";
  const char* home = environment("HOME");
  return home && *home == '/' ? std::string(home) + "/.cache/gpuctl" : std::string();
}

}  // namespace

const CacheDirectory& CacheDirectory::of_user() {
  static const CacheDirectory* directory = new CacheDirectory(user_directory());
  return *directory;
}

std::optional<std::string> CacheDirectory::get(const ContentHash& key, const char* kind) const {
  if (path_.empty()) return std::nullopt;
  const UniqueFd directory = open_private(path_);
  if (directory.get() < 0) return std::nullopt;
  const std::string name = to_text(key) + kind;
  const UniqueFd file(openat(directory.get(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  struct stat about;
  if (file.get() < 0 || fstat(file.get(), &about) != 0 || !S_ISREG(about.st_mode) || about.st_uid != geteuid())
    return std::nullopt;
  const auto size = static_cast<std::uint64_t>(about.st_size);
  Header header;
  if (size < sizeof header || size > most_bytes_ || !gpuctl::read_exactly(file.get(), &header, sizeof header))
    return std::nullopt;
  if (std::memcmp(header.magic, kMagic, sizeof kMagic) != 0 || header.key != key ||
      header.body.length != size - sizeof header)
    return std::nullopt;
  std::string body(header.body.length, '\0');
  if (!gpuctl::read_exactly(file.get(), body.data(), body.size()) || content_hash(body) != header.body)
    return std::nullopt;
  futimens(file.get(), nullptr);  // it was used now, so it is not the next to be removed
  return body;
}

UniqueFd CacheDirectory::open_or_make() const {
  UniqueFd directory = open_private(path_);
  if (directory) return directory;
  make_directories(path_);
  return open_private(path_);
}

bool CacheDirectory::put(const ContentHash& key, const char* kind, std::string_view body) const {
  if (path_.empty() || body.size() > most_bytes_ / 4) return false;
  const UniqueFd directory = open_or_make();
  if (!directory) return false;
  static std::atomic<unsigned> count{0};
  const std::string unfinished = std::string(kUnfinished) + std::to_string(getpid()) + '.' + std::to_string(++count);
  Header header{};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  header.key = key;
  header.body = content_hash(body);
  bool whole = false;
  {
    const UniqueFd file(
        openat(directory.get(), unfinished.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (file.get() < 0) return false;
    whole = gpuctl::write_all(file.get(), {reinterpret_cast<const char*>(&header), sizeof header}) &&
            gpuctl::write_all(file.get(), body);
  }
  const std::string name = to_text(key) + kind;
  if (!whole || renameat(directory.get(), unfinished.c_str(), directory.get(), name.c_str()) != 0) {
    unlinkat(directory.get(), unfinished.c_str(), 0);
    return false;
  }
  make_room(directory.get());
  return true;
}

CacheDirectory::Turn::~Turn() {
  if (file_) unlinkat(directory_.get(), name_.c_str(), 0);
}

CacheDirectory::Turn CacheDirectory::take_turn(const ContentHash& key) const {
  Turn turn;
  if (path_.empty() || !(turn.directory_ = open_or_make())) return turn;
  turn.name_ = std::string(kUnfinished) + to_text(key) + ".turn";
  for (;;) {
    UniqueFd file(openat(turn.directory_.get(), turn.name_.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!file || flock(file.get(), LOCK_EX) != 0) return turn;
    // The previous holder may have removed the file meanwhile. Then other processes wait for another file than this
    // one.
    struct stat mine, there;
    if (fstat(file.get(), &mine) == 0 &&
        fstatat(turn.directory_.get(), turn.name_.c_str(), &there, AT_SYMLINK_NOFOLLOW) == 0 &&
        mine.st_ino == there.st_ino) {
      turn.file_ = std::move(file);
      return turn;
    }
  }
}

// Looks at all files each time something is kept. That takes a microsecond per file; computing what is kept took
// milliseconds.
void CacheDirectory::make_room(int directory) const {
  struct File {
    timespec used;
    std::uint64_t bytes;
    std::string name;
  };
  UniqueFd again(openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  DIR* list = fdopendir(again.get());
  if (!list) return;
  again.release();
  std::vector<File> files;
  std::uint64_t all = 0;
  const std::time_t now = std::time(nullptr);
  while (const dirent* entry = readdir(list)) {
    struct stat about;
    if (!is_made_here(entry->d_name) || fstatat(directory, entry->d_name, &about, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISREG(about.st_mode) || about.st_uid != geteuid())
      continue;
    if (std::string_view(entry->d_name).starts_with(kUnfinished)) {
      if (now - about.st_mtim.tv_sec > kUnfinishedForS) unlinkat(directory, entry->d_name, 0);
      continue;
    }
    files.push_back({about.st_mtim, static_cast<std::uint64_t>(about.st_size), entry->d_name});
    all += files.back().bytes;
  }
  closedir(list);
  if (all <= most_bytes_) return;
  std::sort(files.begin(), files.end(), [](const File& a, const File& b) {
    return a.used.tv_sec != b.used.tv_sec ? a.used.tv_sec < b.used.tv_sec : a.used.tv_nsec < b.used.tv_nsec;
  });
  for (const File& file : files) {
    if (all <= most_bytes_ / 4 * 3) break;
    if (unlinkat(directory, file.name.c_str(), 0) == 0) all -= file.bytes;
  }
}

}  // namespace gpuslice
