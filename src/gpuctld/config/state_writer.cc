#include "gpuctld/config/state_writer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>
#include <iterator>
#include <utility>

#include "base/read_write.h"
#include "gpuctld/config/state_file.h"
#include "gpuctld/protocol/convert.h"
#include "ipc/codec.h"
#include "ipc/message.h"
#include "ipc/unique_fd.h"

namespace gpuctl::daemon {

namespace json = boost::json;

namespace {

/// Records may take so much room in any case.
constexpr std::size_t kLeastForRecords = 64u << 10;

std::string text_of(const std::string& path, const sched::Slice& slice) {
  return ipc::to_text({{"path", path}, {"settings", ipc::to_json(to_settings(slice))}});
}

void add_to_list(std::string& list, const std::string& text) {
  if (!list.empty()) list += ',';
  list += text;
}

}  // namespace

Result<void> StateWriter::write(const sched::Slices& slices, const std::map<std::string, std::string>& configured) {
  note(slices);
  if (configured_ != configured) configured_ = configured, anew_ = true;
  return write();
}

/// Both are in the same order.
void StateWriter::note(const sched::Slices& slices) {
  std::string changed;
  json::array gone;
  auto at = known_.begin();
  const auto forget = [&] { gone.push_back(json::object{{"path", at->first}}), at = known_.erase(at); };
  for (const auto& [path, slice] : slices) {
    while (at != known_.end() && at->first != path && sched::PathLess()(at->first, path)) forget();
    if (at == known_.end() || at->first != path) at = known_.emplace_hint(at, path, Known());
    if (Known& known = at++->second; known.text.empty() || known.slice != slice) {
      known.slice = slice;
      if (std::string text = text_of(path, slice); text != std::exchange(known.text, text)) add_to_list(changed, text);
    }
  }
  while (at != known_.end()) forget();
  if (changed.empty() && gone.empty()) return;
  missing_ += state_record("{\"gone\":" + json::serialize(gone) + ",\"slices\":[" + changed + "]}");
}

Result<void> StateWriter::write() {
  if (known_.empty()) return {};  // nobody has said yet what there is
  if (anew_ || bytes_ - whole_bytes_ + missing_.size() > std::max(whole_bytes_, kLeastForRecords))
    anew_ = true, missing_.clear();
  else if (missing_.empty() || append())
    return {};
  const std::string text = whole();
  if (auto replaced = replace_file(file_, text); !replaced) return replaced;
  struct stat status {};
  inode_ = ::stat(file_.c_str(), &status) == 0 ? status.st_ino : 0;
  whole_bytes_ = bytes_ = text.size();
  missing_.clear();
  anew_ = false;
  return {};
}

Result<void> StateWriter::write_whole() {
  anew_ |= bytes_ > whole_bytes_;
  return write();
}

std::string StateWriter::whole() const {
  std::string slices;
  json::array configured;
  for (const auto& [path, known] : known_) add_to_list(slices, known.text);
  for (const auto& [path, settings] : configured_)
    configured.push_back(json::object{{"path", path}, {"settings", settings}});
  return "{\"version\":1,\"slices\":[" + slices + "],\"configured\":" + json::serialize(configured) + "}\n";
}

/// False: the file is as it was, or is not as it was left and must be written anew. It is closed each time, for those
/// who watch it.
bool StateWriter::append() {
  const ipc::UniqueFd fd(::open(file_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat status {};
  if (!fd || ::fstat(fd.get(), &status) != 0 || status.st_ino != inode_ || status.st_size != static_cast<off_t>(bytes_))
    return false;
  if (!write_all(fd.get(), missing_)) {
    [[maybe_unused]] const int failed = ::ftruncate(fd.get(), status.st_size);  // if so, its size is seen the next time
    return false;
  }
  bytes_ += missing_.size();
  missing_.clear();
  return true;
}

}  // namespace gpuctl::daemon
