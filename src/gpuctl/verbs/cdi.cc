// `gpuctl cdi generate`: devices for containers.
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <ostream>

#include "base/installed.h"
#include "base/replace_file.h"
#include "gpuctl/line/daemon.h"
#include "gpuctl/line/verb.h"
#include "gpuctl/text/table.h"
#include "gpuctl/views/cdi.h"
#include "gpuctl/views/run_environment.h"

namespace gpuctl::cli {
namespace {

namespace fs = std::filesystem;

bool has_file(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

/// What containers of this daemon get.
Outcome<CdiPlan> plan_for(const Context& context, bool software) {
  std::error_code error;
  const std::string self = own_executable();
  const Result<std::string> library = find_library(self);
  if (!library) return Failure{kExitRefused, "cdi: " + library.error().message};
  fs::path directory = fs::weakly_canonical(*library, error).parent_path();
  if (has_file(directory / "gpuctl/ld.so.preload")) directory /= "gpuctl";  // as it is installed
  CdiPlan plan{.socket = fs::absolute(context.socket).lexically_normal(),
               .library = directory / "libgpuslice.so",
               .compile_helper = {},
               .gpuctl = self,
               .software_gpu = {}};
  const fs::path run = fs::path(plan.socket).parent_path();
  if ((fs::status(run, error).permissions() & fs::perms::others_write) != fs::perms::none)
    return Failure{kExitRefused, "cdi: containers get the whole directory of the socket, and " + run.string() +
                                     " is for everybody; give gpuctld a socket in a directory of its own"};
  for (const char* name : {"ld.so.preload", "libgpuslice-preload.so", "libgpuslice.so"})
    if (!has_file(directory / name))
      return Failure{kExitRefused, "cdi: there is no " + (directory / name).string() + ", which containers need"};
  const fs::path in_build_tree = directory.parent_path() / "gpuslice-compile/gpuslice-compile";
  if (!has_file(directory / "gpuslice-compile") && has_file(in_build_tree)) plan.compile_helper = in_build_tree;
  if (!software) return plan;
  const Result<std::string> software_gpu = find_software_gpu(self);
  if (!software_gpu) return Failure{kExitRefused, "cdi: " + software_gpu.error().message};
  plan.software_gpu = fs::weakly_canonical(*software_gpu, error);
  return plan;
}

Failure not_written(const std::string& file, const std::string& reason) {
  return {kExitRefused, "cdi: " + file + ": cannot be written: " + reason};
}

/// A file that has this text already is not touched. A text that is empty removes the file.
Outcome<void> write(const std::string& file, const std::string& text) {
  std::error_code error;
  const fs::file_status there = fs::symlink_status(file, error);
  if (fs::exists(there) && !fs::is_regular_file(there))
    return not_written(file, "it is no regular file; without --output the devices are printed");
  if (text.empty()) {
    fs::remove(file, error);
    if (error) return not_written(file, error.message());
    return {};
  }
  std::ifstream before(file, std::ios::binary);
  if (before && std::string(std::istreambuf_iterator<char>(before), {}) == text) return {};
  // As /run/cdi may not be there yet; what is wrong with the directory the file's own error says.
  fs::create_directory(fs::path(file).parent_path(), error);
  // Of another ending, so that it is no document yet.
  if (const auto failed = replace_file(file, text, file + ".unfinished"))
    return not_written(failed->file, std::strerror(failed->error));
  return {};
}

Outcome<int> generate(Context& context, const std::string& file) {
  Outcome<Daemon> daemon = Daemon::connect(context);
  if (!daemon) return daemon.error();
  const auto status_reply = daemon->call("GetStatus");
  if (!status_reply) return status_reply.error();
  const auto status = decode(ipc::from_json<ipc::Status>(*status_reply));
  if (!status) return status.error();
  const auto list_reply = daemon->call("ListSlices");
  if (!list_reply) return list_reply.error();
  const auto slices = decode_reply(*list_reply, [](ipc::Fields& f) { return ipc::read_list<ipc::Slice>(f, "slices"); });
  if (!slices) return slices.error();
  const bool software = std::ranges::any_of(status->devices, [](const ipc::Device& d) { return d.kind == "software"; });
  const Outcome<CdiPlan> plan = plan_for(context, software);
  if (!plan) return plan.error();
  const CdiDocument document = cdi_document(*plan, *slices);
  for (const std::string& path : document.nameless)
    context.err << "note: slice '" << printable(path)
                << "' has no device: names of devices begin and end with a letter or a digit\n";
  if (file.empty()) {
    if (document.json.empty()) return Failure{kExitRefused, "cdi: there is no slice to make a device of"};
    context.out << document.json;
  } else if (const Outcome<void> written = write(file, document.json); !written) {
    return written.error();
  }
  return kExitOk;
}

}  // namespace

Action declare_cdi(Arguments& arguments) {
  auto what = std::make_shared<std::string>();
  auto file = std::make_shared<std::string>();
  arguments.add("ACTION", *what, "generate: one device for each slice, with the name gpuctl.io/slice=SLICE").required();
  const Argument output = arguments
                              .add("-o,--output", *file,
                                   "Write the devices here, if they are others than before; without slices the file is "
                                   "removed. A file in /etc/cdi or /run/cdi ends in .json")
                              .value("FILE");
  return [what, file, output](Context& context) -> Outcome<int> {
    if (*what != "generate") return usage("cdi: '" + *what + "' is not an action; write gpuctl cdi generate");
    if (output.given() && file->empty()) return usage("cdi: --output needs the name of a file");
    return generate(context, *file);
  };
}

}  // namespace gpuctl::cli
