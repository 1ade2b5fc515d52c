#include <memory>
#include <ostream>

#include "base/plural.h"
#include "gpuctl/line/daemon.h"
#include "gpuctl/line/verb.h"
#include "gpuctl/views/slice_changes.h"
#include "slicefile/slice_file.h"

namespace gpuctl::cli {
Action declare_apply(Arguments& arguments) {
  struct Options {
    std::string file;
    bool dry_run = false;
  };
  auto options = std::make_shared<Options>();
  arguments.add("FILE", options->file, "[slice] tables as in gpuctl.toml: all slices that there are to be").required();
  arguments.add_flag("--dry-run", options->dry_run, "Change nothing; say what would change");

  return [options](Context& context) -> Outcome<int> {
    const slicefile::SliceFile file = slicefile::read_slice_file(options->file);
    for (const std::string& problem : file.problems) context.err << problem << '\n';
    if (!file.problems.empty())
      return usage("apply: " + plural(static_cast<std::int64_t>(file.problems.size()), "mistake") + " in " +
                   options->file + "; nothing is changed");
    std::vector<ipc::WantedSlice> wanted;
    for (const auto& slice : file.slices) wanted.push_back({slice.path, slice.change});
    boost::json::object parameters{{"slices", ipc::to_json(wanted)}};
    if (options->dry_run) parameters["dry_run"] = true;
    const auto reply = change(context, "ApplySlices", std::move(parameters));
    if (!reply) {
      const bool refused = reply.error().exit_status == kExitRefused;
      return Failure{reply.error().exit_status, reply.error().message + (refused ? "; nothing is changed" : "")};
    }
    if (context.json) {
      print_json(context, *reply);
      return kExitOk;
    }
    return print_changes(context, *reply, options->dry_run);
  };
}

}  // namespace gpuctl::cli
