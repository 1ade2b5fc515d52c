#include "gpuctld/config/state_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cstdio>
#include <cstring>
#include <optional>

#include "base/former_mode.h"
#include "base/one_line.h"
#include "base/read_write.h"
#include "gpuctld/config/trusted_file.h"
#include "gpuctld/file_error.h"
#include "ipc/codec.h"
#include "ipc/fields.h"
#include "ipc/message.h"
#include "ipc/unique_fd.h"

namespace gpuctl::daemon {

namespace json = boost::json;

namespace {

constexpr int kStateVersion = 1;
/// A thousand slices take less than one of them.
constexpr std::size_t kMostStateBytes = 64u << 20;

/// Reads what is sound in a state, and notes what is left out.
class StateReader {
 public:
  explicit StateReader(LoadedState& loaded) : loaded_(loaded) {}

  /// `changes`: the lines behind the object.
  void read(const json::object& root, std::string_view changes) {
    ipc::Fields fields(root);
    if (fields.integer("version") != kStateVersion && fields.ok()) fields.complain("version", "is not 1");
    if (!fields.ok()) return leave_out(fields, "");
    slices(root, "");
    each(root, "", "configured", [this](const json::object& object, const std::string& place) {
      ipc::Fields entry(object);
      std::string path = entry.text("path"), settings = entry.text("settings");
      if (!entry.ok()) return leave_out(entry, place);
      loaded_.state.configured[std::move(path)] = as_said_now(std::move(settings));
    });
    read(changes);
  }

  void leave_out(const std::string& what) { loaded_.left_out.push_back(one_line(what, '?') + "; left out"); }

 private:
  void read(std::string_view changes) {
    for (changes_ = 1;; ++changes_) {
      changes.remove_prefix(std::min(changes.find_first_not_of(" \t\r\n"), changes.size()));
      if (changes.empty()) return;
      const std::string_view line = changes.substr(0, changes.find('\n'));
      const std::string_view text = line.substr(line.find(' ') + 1);
      boost::system::error_code broken;
      const json::value value = json::parse(text, broken);
      const std::string where = "change " + std::to_string(changes_);
      if (!changes.starts_with(state_record(text)) || broken || !value.is_object())
        return leave_out(where + " and what follows, because it is not whole");
      each(value.get_object(), where + ": ", "gone", [this](const json::object& object, const std::string& place) {
        ipc::Fields gone(object);
        const std::string path = gone.text("path");
        if (!gone.ok()) return leave_out(gone, place);
        std::erase_if(loaded_.state.slices, [&](const auto& slice) { return slice.first == path; });
      });
      slices(value.get_object(), where + ": ");
      changes.remove_prefix(line.size());
    }
  }

  void leave_out(const ipc::Fields& fields, const std::string& place) {
    leave_out(place + fields.field() + ' ' + fields.reason());
  }

  template <class Visit>
  void each(const json::object& root, const std::string& where, const char* name, Visit visit) {
    const json::value* list = root.if_contains(name);
    if (list == nullptr || !list->is_array()) return leave_out(where + name + " must be an array");
    std::size_t i = 0;
    for (const json::value& item : list->get_array()) {
      const std::string place = where + name + "[" + std::to_string(i++) + "]";
      if (item.is_object())
        visit(item.get_object(), place + '.');
      else
        leave_out(place + " must be an object");
    }
  }

  void slices(const json::object& root, const std::string& where) {
    each(root, where, "slices",
         [this](json::object object, const std::string& place) { slice(std::move(object), place); });
  }

  void slice(json::object object, const std::string& place) {
    ipc::Fields fields(object);
    std::string path = fields.text("path");
    if (!fields.ok()) return leave_out(fields, place);
    json::object settings;
    if (json::value* found = object.if_contains("settings"); found != nullptr && found->is_object())
      settings = std::move(found->get_object());
    else
      leave_out(place + "settings must be an object");
    ipc::SliceSettings read = this->settings(std::move(settings), place + "settings.");
    if (replace_former_mode(read))
      loaded_.notes.push_back(one_line("slice " + path, '?') +
                              ": reserve_mode: " + std::string(kFormerReserveModeSays));
    auto& all = loaded_.state.slices;
    const auto is_it = [&](const auto& known) { return known.first == path; };
    const auto known = changes_ == 0 ? all.end() : std::ranges::find_if(all, is_it);
    if (known != all.end())
      known->second = std::move(read);
    else
      all.emplace_back(std::move(path), std::move(read));
  }

  /// What the configuration said, as it is read today. So the slice is not set anew.
  static std::string as_said_now(std::string text) {
    boost::system::error_code broken;
    const json::value value = json::parse(text, broken);
    ipc::SliceSettings said;
    if (broken || !value.is_object()) return text;
    ipc::Fields fields(value.get_object());
    ipc::read(fields, said);
    return replace_former_mode(said) ? ipc::to_text(ipc::to_json(said)) : text;
  }

  /// Without the fields that are wrong.
  ipc::SliceSettings settings(json::object object, const std::string& place) {
    for (;;) {
      ipc::SliceSettings settings;
      ipc::Fields fields(object);
      ipc::read(fields, settings);
      fields.refuse_unknown();
      if (fields.ok()) return settings;
      leave_out(fields, place);
      object.erase(fields.field());
    }
  }

  LoadedState& loaded_;
  std::size_t changes_ = 0;  ///< seen so far
};

/// A file whose room is kept has a multiple of this.
constexpr std::size_t kRoomStep = 16u << 10;

/// The earlier file, to be written over. None if it is not this daemon's alone.
ipc::UniqueFd open_kept(const std::string& path) {
  ipc::UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat status {};
  const bool own = fd && ::fstat(fd.get(), &status) == 0 && S_ISREG(status.st_mode) && status.st_nlink == 1 &&
                   status.st_uid == ::geteuid() && (status.st_mode & 0777) == 0600;
  return own ? std::move(fd) : ipc::UniqueFd();
}

}  // namespace

LoadedState understand_state(std::string text) {
  LoadedState loaded;
  StateReader reader(loaded);
  json::parser parser;
  boost::system::error_code broken;
  const std::size_t length = parser.write_some(text, broken);
  const json::value value = broken ? json::value() : parser.release();
  if (value.is_object())
    reader.read(value.get_object(), std::string_view(text).substr(length));
  else
    reader.leave_out("all of it, because it is not a JSON object");
  loaded.text = std::move(text);
  return loaded;
}

Result<LoadedState> load_state(const std::string& file) {
  auto text = read_trusted_file(file, Writers::owner, ::geteuid(), kMostStateBytes);
  if (!text) return text.error();
  return *text ? understand_state(std::move(**text)) : LoadedState{};
}

std::string state_record(std::string_view change) {
  std::uint64_t sum = 0xcbf29ce484222325;  // FNV-1a
  for (const char c : change) sum = (sum ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return std::to_string(sum) + ' ' + std::string(change) + '\n';
}

Result<std::string> keep_aside(const std::string& file, const std::string& text) {
  for (std::size_t n = 0;; ++n) {
    std::string copy = file + ".bad" + (n == 0 ? "" : "." + std::to_string(n));
    struct stat status {};
    if (::lstat(copy.c_str(), &status) != 0) {
      if (auto copied = replace_file(copy, text); !copied) return copied.error();
      return copy;
    }
    const auto kept = read_trusted_file(copy, Writers::owner, ::geteuid(), kMostStateBytes);
    if (kept && *kept && **kept == text) return copy;
  }
}

Result<void> replace_file(const std::string& file, const std::string& text, Room room) {
  const std::string fresh = file + ".new";
  ipc::UniqueFd fd;
  if (room == Room::kept) fd = open_kept(fresh);
  if (!fd) {
    ::unlink(fresh.c_str());
    fd.reset(::open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  }
  if (!fd) return file_error(fresh, "cannot be made");
  const std::string padding(room == Room::kept ? (kRoomStep - text.size() % kRoomStep) % kRoomStep : 0, '\n');
  const auto length = static_cast<off_t>(text.size() + padding.size());
  if (!write_all(fd.get(), text + padding) || ::ftruncate(fd.get(), length) != 0)
    return file_error(fresh, "cannot be written");
  fd.reset();
  // rename() onto a file makes ext4 and btrfs begin to write the fresh one to the disk, and waits where the disk is
  // busy: 0.6 ms in the median beside compilers, 55 ms in the p99, and 9.5 s once. An exchange waits for no disk.
  if (::renameat2(AT_FDCWD, fresh.c_str(), AT_FDCWD, file.c_str(), RENAME_EXCHANGE) == 0) {
    if (room == Room::given_back) ::unlink(fresh.c_str());  // the earlier one
    return {};
  }
  // There is no earlier one, or the file system cannot exchange.
  if (::rename(fresh.c_str(), file.c_str()) != 0) return file_error(file, "cannot be replaced");
  return {};
}

}  // namespace gpuctl::daemon
