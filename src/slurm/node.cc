#include "slurm/node.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/read_write.h"
#include "ipc/unique_fd.h"

namespace gpuctl::slurm {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostBytes = 1u << 20;  // of a file with a line for each job

std::string content_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

bool all_digits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

std::vector<std::string> split(std::string_view text, std::string_view separators) {
  std::vector<std::string> all;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find_first_of(separators, begin), text.size());
    if (end > begin) all.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return all;
}

std::string joined(const std::vector<std::string>& items, char separator) {
  std::string text;
  for (const std::string& item : items) text += (text.empty() ? "" : std::string(1, separator)) + item;
  return text;
}

Error cannot(const std::string& what, const std::string& path) {
  return fail("cannot " + what + ' ' + path + ": " + std::strerror(errno));
}

/// Under a lock, as jobs start and end beside each other.
Result<void> change_lines(const std::string& path, const std::string& line, bool there) {
  const ipc::UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644));
  if (!fd || ::flock(fd.get(), LOCK_EX) != 0) return cannot("open", path);
  std::string text;
  if (read_pieces(fd.get(), [&](std::string_view piece) { return (text += piece).size() < kMostBytes; }) !=
      ReadEnd::end)
    return cannot("read", path);
  std::vector<std::string> lines = split(text, "\n");
  std::erase(lines, line);
  if (there) lines.push_back(line);
  text.clear();
  for (const std::string& each : lines) text += each + '\n';
  if (::ftruncate(fd.get(), 0) != 0 || ::lseek(fd.get(), 0, SEEK_SET) != 0 || !write_all(fd.get(), text))
    return cannot("write", path);
  return {};
}

}  // namespace

std::optional<std::set<std::uint32_t>> living_jobs(const std::string& proc) {
  std::set<std::uint32_t> jobs;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(proc, error)) {
    if (!all_digits(entry.path().filename().string())) continue;
    if (content_of(entry.path() / "comm") != "slurmstepd\n") continue;
    const std::string title = content_of(entry.path() / "cmdline");
    // "slurmstepd spank prolog" runs this plugin. One that has ended has no title.
    if (title.empty() || title.find(std::string("\0spank\0", 7)) != std::string::npos) continue;
    const std::size_t bracket = title.find('[');
    std::uint32_t job = 0;
    if (bracket == std::string::npos ||
        std::from_chars(title.data() + bracket + 1, title.data() + title.size(), job).ec != std::errc())
      return std::nullopt;
    jobs.insert(job);
  }
  if (error) return std::nullopt;
  return jobs;
}

Result<void> tell_dcgm(const std::string& directory, std::string_view gpus, std::uint32_t job, bool runs) {
  if (::mkdir(directory.c_str(), 0755) != 0 && errno != EEXIST) return cannot("make", directory);
  for (const std::string& gpu : split(gpus, ",")) {
    if (!all_digits(gpu)) return fail("'" + gpu + "' of SLURM_JOB_GPUS is not the number of a GPU");
    if (const auto changed = change_lines(directory + '/' + gpu, std::to_string(job), runs); !changed) return changed;
  }
  return {};
}

std::string preload_without(const std::string& list, const std::string& library) {
  std::vector<std::string> items = split(list, ": ");
  std::erase(items, library);
  return joined(items, ':');
}

std::string preload_behind(const std::string& list, const std::string& library) {
  const std::string others = preload_without(list, library);
  return others.empty() ? library : others + ':' + library;
}

}  // namespace gpuctl::slurm
