// The user's cache directory, for results that are expensive to compute: one file each, named by the hash of its
// subject.
//
// A file is a header (magic, key, length and hash of the body) and the body. It is written under another name and
// renamed when complete. So readers, in this process and in others, see all of it or nothing. A file that was damaged
// later counts as absent. When all files together become too large, those unused for longest are removed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "ipc/unique_fd.h"
#include "libgpuslice/image/content_hash.h"

namespace gpuslice {

/// Most bytes of all files together: some thousand images of a few kernels. Above that the oldest files are removed.
inline constexpr std::uint64_t kCacheBytes = std::uint64_t{256} << 20;

class CacheDirectory {
 public:
  /// This user's directory: gpuctl in $XDG_CACHE_HOME or ~/.cache. There is none if GPUSLICE_CACHE is 0. The
  /// environment is read once.
  static const CacheDirectory& of_user();

  /// With an empty path it keeps and finds nothing. Otherwise the directory is made when something is first kept. A
  /// directory that is not this user's, or that others may access, is not used.
  explicit CacheDirectory(std::string path, std::uint64_t most_bytes = kCacheBytes)
      : path_(std::move(path)), most_bytes_(most_bytes) {}

  /// Whether there is a directory.
  bool keeps() const { return !path_.empty(); }

  /// The body kept under `key`, or nothing, also after any failure. `kind` is the end of the file's name. Any thread.
  std::optional<std::string> get(const ContentHash& key, const char* kind) const;

  /// Keeps `body` in place of what was kept before. Any thread. Returns false if that fails.
  bool put(const ContentHash& key, const char* kind, std::string_view body) const;

  /// The right to make what is kept under a key, until this object is destroyed. One process of the user has it at a
  /// time. Without a directory, every caller has it.
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
  /// Waits while another process has the turn.
  Turn take_turn(const ContentHash& key) const;

 private:
  gpuctl::ipc::UniqueFd open_or_make() const;
  void make_room(int directory) const;

  std::string path_;
  std::uint64_t most_bytes_;
};

}  // namespace gpuslice
