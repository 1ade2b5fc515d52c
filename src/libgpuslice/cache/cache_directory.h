// The user's own directory of things that were expensive to find out: one file each, named by the hash of what it is
// about.
//
// A file is a header (magic, key, length and hash of the body) and the body. It is written under another name and
// renamed when whole, so readers, in this process and in others, see all of it or nothing; one that was damaged since
// is taken for absent. Files that are not used for long go when all together are too much.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "ipc/unique_fd.h"
#include "libgpuslice/cache/content_hash.h"

namespace gpuslice {

/// All files together, in bytes, before the oldest go; some thousand images of a few kernels.
inline constexpr std::uint64_t kCacheBytes = std::uint64_t{256} << 20;

class CacheDirectory {
 public:
  /// Of this user: gpuctl in $XDG_CACHE_HOME or ~/.cache; none if GPUSLICE_CACHE is 0. Read from the environment once.
  static const CacheDirectory& of_user();

  /// An empty path: keeps and finds nothing. Else the directory is made when something is first kept; one that is not
  /// this user's, or that others may enter, is not used.
  explicit CacheDirectory(std::string path, std::uint64_t most_bytes = kCacheBytes)
      : path_(std::move(path)), most_bytes_(most_bytes) {}

  /// Whether there is a directory at all.
  bool keeps() const { return !path_.empty(); }

  /// The body kept under `key`, or nothing. `kind` ends the file's name. Any thread; all failures mean nothing.
  std::optional<std::string> get(const ContentHash& key, const char* kind) const;

  /// Keeps `body`, in the place of what was kept before. Any thread; false: it could not be kept.
  bool put(const ContentHash& key, const char* kind, std::string_view body) const;

  /// The right to make what is kept under a key, until it is destroyed. One process of the user has it at a time;
  /// without a directory, everybody.
  class Turn {
    friend class CacheDirectory;
    gpuctl::ipc::UniqueFd directory_, file_;
    std::string name_;

   public:
    Turn() = default;
    Turn(Turn&&) noexcept = default;
    Turn& operator=(Turn&&) = delete;
    ~Turn();
  };
  /// Waits while another process has it.
  Turn take_turn(const ContentHash& key) const;

 private:
  gpuctl::ipc::UniqueFd open_or_make() const;
  void make_room(int directory) const;

  std::string path_;
  std::uint64_t most_bytes_;
};

}  // namespace gpuslice
