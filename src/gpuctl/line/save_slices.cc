#include "gpuctl/line/save_slices.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/slurm_job.h"
#include "gpuctl/line/daemon.h"
#include "gpuctl/text/table.h"
#include "sched/slices.h"
#include "slicefile/drop_in.h"
#include "slicefile/slice_file.h"

namespace gpuctl::cli {
namespace {

/// Every setting, so that nothing in an earlier file remains in force. Of the root those that can be set there.
ipc::SliceSettings settings_of(const ipc::Slice& slice) {
  ipc::SliceSettings settings;
#define GPUCTL_ALWAYS(name, ...) settings.name = slice.name;
#define GPUCTL_LIMIT(name, lift, ...) \
  settings.name = slice.name;         \
  settings.lift = !slice.name;
  GPUCTL_SLICE_SETTINGS(GPUCTL_ALWAYS, GPUCTL_ALWAYS, GPUCTL_LIMIT)
#undef GPUCTL_ALWAYS
#undef GPUCTL_LIMIT
  for (const SliceSetting& setting : kSliceSettings)
    if (slice.path == "/" && !setting.on_root) drop(setting, settings);
  return settings;
}

std::string file_of(const std::string& config) {
  return config.empty() ? GPUCTL_CONFIG_FILE : std::filesystem::absolute(config).lexically_normal().string();
}

}  // namespace

Outcome<void> reads_saved(const Context& context, const std::string& file) {
  const std::string config = file_of(file);
  const auto reply = ask(context, "GetStatus");
  if (!reply) return reply.error();
  const auto status = decode(ipc::from_json<ipc::Status>(*reply));
  if (!status) return status.error();
  if (status->config == config) return {};
  const std::string daemon = "gpuctld at " + context.socket;
  if (!status->config) return usage(daemon + " reads no configuration; start it with --config FILE");
  return usage(daemon + " reads " + printable(*status->config) + "; name that file with --config");
}

Outcome<SavedSlices> save_slices(const Context& context, const std::string& path, const std::string& file) {
  const std::string config = file_of(file);
  if (const auto read = reads_saved(context, config); !read) return read.error();
  const auto reply = ask(context, "ListSlices");
  if (!reply) return reply.error();
  const auto slices =
      decode_reply(*reply, [](ipc::Fields& fields) { return ipc::read_list<ipc::Slice>(fields, "slices"); });
  if (!slices) return slices.error();
  if (!path.empty() && std::ranges::find(*slices, path, &ipc::Slice::path) == slices->end())
    return Failure{kExitRefused, "slice '" + path + "' does not exist" + hint_of(path, *slices)};

  const std::string directory = config + ".d";
  SavedSlices saved;
  std::vector<slicefile::DropIn> drop_ins;
  for (const ipc::Slice& slice : *slices) {
    if (!path.empty() && (slice.path == "/" ? path != "/" : !sched::in_or_below(path, slice.path))) continue;
    if (path.empty() && belongs_to_slurm_job(slice.path)) continue;
    saved.written.push_back(slicefile::drop_in_file(directory, slice.path));
    drop_ins.push_back({saved.written.back(), slicefile::table_text(slice.path, settings_of(slice))});
  }
  if (const auto written = slicefile::write_drop_ins(drop_ins); !written)
    return Failure{kExitRefused, written.error().message};
  const auto there = path.empty() ? slicefile::saved_drop_ins(directory) : std::vector<std::string>();
  for (const std::string& file : there) {
    if (std::ranges::find(saved.written, file) != saved.written.end()) continue;
    if (::unlink(file.c_str()) != 0)
      return Failure{kExitRefused, file + ": cannot be removed: " + std::strerror(errno)};
    saved.removed.push_back(file);
  }
  if (const auto noted = ask(context, "NoteSaved"); !noted)
    return Failure{noted.error().exit_status,
                   "the files are written, but not noted by gpuctld: " + noted.error().message};
  return saved;
}

}  // namespace gpuctl::cli
