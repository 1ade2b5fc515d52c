#include "gpuctld/config/state.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/json.hpp>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include "gpuctld/protocol/convert.h"
#include "ipc/codec.h"
#include "ipc/message.h"
#include "ipc/unique_fd.h"

namespace gpuctl::daemon {

namespace json = boost::json;

namespace {

constexpr int kStateVersion = 1;
constexpr sched::Caller kDaemon{0, {}};

Error system_error(const std::string& file, const char* what) {
  return fail(file + ": " + what + ": " + std::strerror(errno));
}

}  // namespace

Result<State> load_state(const std::string& file) {
  State state;
  std::ifstream stream(file, std::ios::binary);
  if (!stream) {
    if (errno == ENOENT) return state;
    return system_error(file, "cannot be read");
  }
  std::stringstream content;
  content << stream.rdbuf();
  boost::system::error_code broken;
  const json::value value = json::parse(content.str(), broken);
  if (broken || !value.is_object()) return fail(file + ": not a JSON object");
  ipc::Fields fields(value.as_object());
  if (fields.integer("version") != kStateVersion && fields.ok()) fields.complain("version", "is not 1");
  for (ipc::Fields& slice : fields.objects("slices")) {
    auto& [path, settings] = state.slices.emplace_back();
    path = slice.text("path");
    ipc::Fields nested = slice.object("settings");
    ipc::read(nested, settings);
  }
  for (ipc::Fields& entry : fields.objects("configured")) state.configured[entry.text("path")] = entry.text("settings");
  if (!fields.ok()) return fail(file + ": " + fields.error().message);
  return state;
}

Result<void> save_state(const std::string& file, const State& state) {
  json::array slices, configured;
  for (const auto& [path, settings] : state.slices)
    slices.push_back(json::object{{"path", path}, {"settings", ipc::to_json(settings)}});
  for (const auto& [path, settings] : state.configured)
    configured.push_back(json::object{{"path", path}, {"settings", settings}});
  return replace_file(
      file, ipc::to_text({{"version", kStateVersion}, {"slices", slices}, {"configured", configured}}) + "\n");
}

Result<void> replace_file(const std::string& file, const std::string& text) {
  const std::string fresh = file + ".new";
  ::unlink(fresh.c_str());
  {
    const ipc::UniqueFd fd(::open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!fd) return system_error(fresh, "cannot be made");
    for (std::size_t written = 0; written < text.size();) {
      const ssize_t n = ::write(fd.get(), text.data() + written, text.size() - written);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return system_error(fresh, "cannot be written");
      written += static_cast<std::size_t>(n);
    }
  }
  if (::rename(fresh.c_str(), file.c_str()) != 0) return system_error(file, "cannot be replaced");
  return {};
}

void restore_slices(const State& state, sched::SliceTree& tree, std::vector<std::string>& notes) {
  for (const auto& [path, settings] : state.slices) {
    sched::SliceChange change = settings;
    const auto apply = [&, &path = path] {
      return path == "/" ? tree.change(path, change, kDaemon) : tree.create(path, change, kDaemon);
    };
    for (const SliceSetting& setting : kSliceSettings)
      if (path == "/" && !setting.on_root) drop(setting, change);  // the GPU itself decides these
    auto restored = apply();
    if (!restored && restored.error().code == sched::SliceError::Code::reserve_does_not_fit) {
      notes.push_back(restored.error().message() + "; restored without one");
      change.reserve = 0;
      restored = apply();
    }
    if (!restored) notes.push_back("slice " + path + " is not restored: " + restored.error().message());
  }
}

Result<void> apply_config(const Config& config, bool force, std::map<std::string, std::string>& configured,
                          sched::SliceTree& tree) {
  sched::SliceTree wanted = tree;
  std::map<std::string, std::string> said;
  for (const ConfiguredSlice& slice : config.slices) {
    const std::string text = ipc::to_text(ipc::to_json(slice.change));
    said[slice.path] = text;
    const bool exists = wanted.find(slice.path) != nullptr;
    const auto before = configured.find(slice.path);
    if (exists && !force && before != configured.end() && before->second == text) continue;
    const auto result =
        exists ? wanted.change(slice.path, slice.change, kDaemon) : wanted.create(slice.path, slice.change, kDaemon);
    if (result) continue;
    const sched::SliceError& error = result.error();
    const bool unfit = error.code == sched::SliceError::Code::reserve_does_not_fit;
    const std::string field = unfit ? "reserve" : error.field;
    const auto found = slice.where_of.find(field);
    return fail((found == slice.where_of.end() ? slice.where : found->second) + ": slice.\"" + slice.path + "\"" +
                (unfit                   ? ".reserve: " + error.message()
                 : error.field == "path" ? ": " + error.reason
                 : error.field.empty()   ? ": " + error.message()
                                         : "." + error.message()));
  }
  tree = std::move(wanted);
  configured = std::move(said);
  return {};
}

State current_state(const sched::SliceTree& tree, const std::map<std::string, std::string>& configured) {
  State state;
  for (const auto& [path, slice] : tree.slices()) state.slices.emplace_back(path, to_settings(slice));
  state.configured = configured;
  return state;
}

}  // namespace gpuctl::daemon
