#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <ostream>
#include <string_view>

#include "base/plural.h"
#include "gpuctl/line/daemon.h"
#include "gpuctl/line/settings.h"
#include "gpuctl/line/verb.h"
#include "gpuctl/profile/profile_builder.h"
#include "gpuctl/profile/profile_file.h"
#include "gpuctl/profile/profile_run.h"
#include "gpuctl/profile/profile_table.h"
#include "gpuctl/text/progress.h"
#include "gpuctl/text/table.h"
#include "gpuctl/text/units.h"

namespace gpuctl::cli {
namespace {

constexpr std::int64_t kMostRuns = 1000;

struct ProfileOptions {
  std::string output, slice, runs = "1", widths, load, user;
  bool add = false;
};

/// "8,4,2": each from 1 to `sms`, the greatest first. Without a text: all, three quarters, a half, a quarter, an
/// eighth.
Outcome<std::vector<std::int64_t>> widths_of(const std::string& text, std::int64_t sms) {
  std::vector<std::int64_t> widths;
  if (text.empty()) widths = {sms, sms * 3 / 4, sms / 2, sms / 4, sms / 8};
  for (std::size_t at = 0; !text.empty() && at <= text.size();) {
    const std::string_view word = std::string_view(text).substr(at, text.find(',', at) - at);
    at += word.size() + 1;
    const auto width = parse_integer(word);
    if (!width || *width < 1 || *width > sms)
      return usage("profile: --widths: '" + std::string(word) + "' is not a number of SMs from 1 to " +
                   std::to_string(sms));
    widths.push_back(*width);
  }
  std::erase(widths, 0);
  std::ranges::sort(widths, std::greater());
  widths.erase(std::unique(widths.begin(), widths.end()), widths.end());
  return widths;
}

Outcome<std::vector<ipc::Device>> devices_of(const Context& context, std::int64_t* clients) {
  const auto reply = ask(context, "GetStatus");
  if (!reply) return reply.error();
  return decode_reply(*reply, [&](ipc::Fields& fields) {
    *clients = fields.integer("clients", 0);
    return ipc::read_list<ipc::Device>(fields, "devices");
  });
}

void print(Context& context, const Profile& profile, const std::string& file, const std::vector<std::string>& notes) {
  if (!context.json) {
    for (const std::string& line : profile_lines(profile.kernels)) context.out << line << '\n';
    for (const std::string& note : notes) context.out << note << '\n';
    context.out << plural(std::ssize(profile.kernels), "kernel") << " written to " << printable(file) << '\n';
    return;
  }
  boost::json::array kernels;
  for (const ipc::KernelProfile& kernel : profile.kernels) {
    boost::json::object object = to_json(kernel);
    const auto error = error_of(kernel);
    object["error"] = error ? boost::json::value(*error) : boost::json::value();
    kernels.push_back(std::move(object));
  }
  print_json(context, {{"file", file},
                       {"gpu", profile.gpu},
                       {"sms", profile.sms},
                       {"kernels", std::move(kernels)},
                       {"notes", boost::json::array(notes.begin(), notes.end())}});
}

/// What a profile of this machine says of its GPUs, which must all be of one kind.
Outcome<Profile> profile_here(const std::vector<ipc::Device>& devices) {
  if (devices.empty()) return Failure{kExitRefused, "profile: gpuctld manages no GPU"};
  Profile profile{.gpu = devices.front().name, .sms = devices.front().sms, .kernels = {}};
  const auto differs = [&](const ipc::Device& d) { return d.name != profile.gpu || d.sms != profile.sms; };
  if (std::ranges::any_of(devices, differs))
    return Failure{kExitRefused, "profile: the GPUs here differ, and a profile is of one kind of GPU"};
  return profile;
}

/// The kernels in the file, to which `here` is to be added.
Outcome<std::vector<ipc::KernelProfile>> earlier_kernels(const std::string& file, const Profile& here) {
  Result<Profile> earlier = read_profile(file);
  if (!earlier) return usage("profile: " + earlier.error().message);
  if (earlier->gpu == here.gpu && earlier->sms == here.sms) return std::move(earlier->kernels);
  const auto gpu = [](const Profile& of) { return printable(of.gpu) + " with " + plural(of.sms, "SM"); };
  return usage("profile: " + file + ": is of " + gpu(*earlier) + ", and here is " + gpu(here));
}

/// What all runs recorded.
struct Recorded {
  std::int64_t launches = 0, lost = 0;
};

/// Runs the program so many times with each width in turn.
Outcome<Recorded> run_with_each(const std::vector<std::int64_t>& widths, std::int64_t runs, const std::string& parent,
                                const Context& context, ProfileBuilder& builder) {
  Outcome<SliceForProfile> slice = SliceForProfile::make(context, parent);
  if (!slice) return slice.error();
  end_profile_on_signals();
  Recorded recorded;
  std::int64_t begun = 0;
  for (const std::int64_t width : widths) {
    if (const auto limited = slice->limit(width); !limited) return limited.error();
    const std::string where = "with " + plural(width, "SM");
    const auto take = [&](const ipc::Launch& launch) {
      ++recorded.launches;
      builder.add(launch, width == widths.front());
    };
    for (std::int64_t run = 0; run < runs; ++run) {
      // A line of its own: the program writes too.
      if (is_watched(context.err))
        context.err << "gpuctl: profile: run " << ++begun << " of " << runs * static_cast<std::int64_t>(widths.size())
                    << ", " << where << '\n';
      if (const auto ran = run_recorded(context, slice->path(), where, take, recorded.lost); !ran) return ran.error();
    }
  }
  if (recorded.launches == 0) return Failure{kExitRefused, "profile: no launch was recorded; nothing is written"};
  return recorded;
}

/// What the daemon knows of the caller's kernels.
Outcome<std::vector<ipc::KernelDurations>> known_kernels(const Context& context) {
  const auto reply = ask(context, "ListKernels");
  if (!reply) return reply.error();
  auto known =
      decode_reply(*reply, [](ipc::Fields& fields) { return ipc::read_list<ipc::KernelDurations>(fields, "kernels"); });
  if (known) std::erase_if(*known, [](const auto& kernel) { return kernel.uid != ::geteuid(); });
  return known;
}

std::vector<std::string> notes_of(const Recorded& recorded, const ProfileBuilder& builder, std::int64_t clients) {
  std::vector<std::string> notes;
  if (recorded.lost > 0)
    notes.push_back(std::to_string(recorded.lost) + " launches were lost: the daemon could not keep so many");
  if (builder.nameless() > 0)
    notes.push_back("kernels left out, because the daemon was not told their names: " +
                    std::to_string(builder.nameless()));
  if (clients > 0)
    notes.push_back("other programs that were attached, and may be in these times: " + std::to_string(clients));
  return notes;
}

Outcome<int> measure(const ProfileOptions& options, Context& context) {
  const auto runs = parse_integer(options.runs);
  if (!runs || *runs < 1 || *runs > kMostRuns)
    return usage("profile: --runs: '" + options.runs + "' is not a number from 1 to " + std::to_string(kMostRuns));
  const Outcome<std::string> parent = slice_path(options.slice.empty() ? "/" : options.slice);
  if (!parent) return parent.error();
  std::int64_t clients = 0;
  const auto devices = devices_of(context, &clients);
  if (!devices) return devices.error();
  Outcome<Profile> profile = profile_here(*devices);
  if (!profile) return profile.error();
  const auto widths = widths_of(options.widths, profile->sms);
  if (!widths) return widths.error();
  if (options.add) {
    auto earlier = earlier_kernels(options.output, *profile);
    if (!earlier) return earlier.error();
    profile->kernels = std::move(*earlier);
  }

  if (const auto may = may_be_written(options.output); !may) return usage("profile: " + may.error().message);

  ProfileBuilder builder(std::move(profile->kernels));
  const Outcome<Recorded> recorded = run_with_each(*widths, *runs, *parent, context, builder);
  if (!recorded) return recorded.error();
  const auto known = known_kernels(context);
  if (!known) return known.error();
  builder.add(*known);
  profile->kernels = builder.finish();
  if (const auto written = write_profile(options.output, *profile); !written)
    return usage("profile: " + written.error().message);
  print(context, *profile, options.output, notes_of(*recorded, builder, clients));
  return kExitOk;
}

/// Teaches the daemon what is in the file.
Outcome<int> load(const ProfileOptions& options, Context& context) {
  boost::json::object whose;
  if (!options.user.empty()) {
    const passwd* entry = ::getpwnam(options.user.c_str());  // names first: a user may be called 1000
    const auto number = parse_integer(options.user);
    if (entry == nullptr && !number)
      return usage("--user: there is no user '" + options.user + "'; give a user's name or number");
    whose["uid"] = entry != nullptr ? std::int64_t{entry->pw_uid} : *number;
  }
  if (const auto trusted = check_writers(options.load, ::geteuid()); !trusted)
    return usage("profile: " + trusted.error().message);
  const Result<Profile> profile = read_profile(options.load);
  if (!profile) return usage("profile: " + profile.error().message);
  std::int64_t clients = 0;
  const auto devices = devices_of(context, &clients);
  if (!devices) return devices.error();
  const auto is_its_gpu = [&](const ipc::Device& d) { return d.name == profile->gpu && d.sms == profile->sms; };
  if (std::ranges::none_of(*devices, is_its_gpu))
    return Failure{kExitRefused, "profile: " + options.load + ": is of " + printable(profile->gpu) + " with " +
                                     plural(profile->sms, "SM") + "; there is no such GPU here"};
  for (const ipc::KernelProfile& kernel : profile->kernels) {
    boost::json::object parameters = whose;
    parameters["kernel"] = to_json(kernel);
    const auto taught = ask(context, "TeachKernel", std::move(parameters));
    if (!taught) return taught.error();
  }
  if (context.json)
    print_json(context, {{"kernels", static_cast<std::int64_t>(profile->kernels.size())}});
  else
    context.out << "the daemon knows " << plural(std::ssize(profile->kernels), "kernel") << " from "
                << printable(options.load) << '\n';
  return kExitOk;
}

}  // namespace

Action declare_profile(Arguments& arguments) {
  auto options = std::make_shared<ProfileOptions>();
  arguments.add("-o,--output", options->output, "Run the program and write what was measured here").value("FILE");
  arguments.add_flag("--add", options->add, "Add to what is in that file");
  arguments.add("--runs", options->runs, "Runs with each number of SMs (1)").value("N");
  arguments
      .add("--widths", options->widths,
           "Numbers of SMs, as in 8,4,2 (all, and three quarters, a half, a quarter and an eighth)")
      .value("LIST");
  arguments.add("--slice", options->slice, "Run in a slice that is made below this one (/)").value("NAME");
  arguments.add("--load", options->load, "Teach the daemon what is in this file; no program runs").value("FILE");
  arguments.add("--user", options->user, "With --load: for this user's programs, by name or number; root only");
  // For the help only: the program's command line is cut off before the options are parsed.
  auto program = std::make_shared<std::vector<std::string>>();
  arguments.add("PROGRAM", *program, "The program, looked up in PATH, and its arguments, passed on untouched");
  arguments.footer(
      "Options of gpuctl end at the program or at '--'. The program runs several times, beside nothing else if "
      "the\n"
      "figures are to be of use. Nothing is written if a run fails.");

  return [options](Context& context) -> Outcome<int> {
    if (options->output.empty() == options->load.empty())
      return usage("profile: give either -o FILE and a program, or --load FILE");
    if (!options->load.empty()) {
      if (!context.command.empty()) return usage("profile: --load runs no program; leave it out");
      return load(*options, context);
    }
    if (!options->user.empty()) return usage("profile: --user goes with --load");
    if (context.command.empty()) return usage("profile: no program given; write gpuctl profile -o FILE -- PROGRAM");
    return measure(*options, context);
  };
}

}  // namespace gpuctl::cli
