#include <algorithm>
#include <memory>
#include <ostream>

#include "gpuctl/doctor/gather.h"
#include "gpuctl/line/daemon.h"
#include "gpuctl/line/verb.h"
#include "gpuctl/text/units.h"
#include "gpuctl/views/kernel_lines.h"
#include "gpuctl/views/latency_lines.h"
#include "gpuctl/views/slice_rows.h"

namespace gpuctl::cli {
namespace {

/// ruling_policy() if the program takes turns; else empty.
Outcome<std::string> ruling_of(const Context& context, const ipc::Client& client) {
  if (std::ranges::none_of(client.usage, [](const ipc::ClientUsage& usage) { return usage.in_force == "jobs"; }))
    return std::string();
  const auto reply = ask(context, "ListSlices");
  if (!reply) return reply.error();
  const auto slices = decode_reply(*reply, [](ipc::Fields& f) { return ipc::read_list<ipc::Slice>(f, "slices"); });
  if (!slices) return slices.error();
  return ruling_policy(*slices, client.slice);
}

/// With what there is to say of a program that has not the library: it is attached to nothing.
Failure not_explained(const Context& context, std::int64_t pid, Failure failure) {
  const ProgramSeen seen = see_program(context, pid);
  if (seen.uses_cuda && !seen.has_library && !seen.client)
    for (const Finding& finding : judge(seen)) failure.message += "; " + finding.what;
  return failure;
}

}  // namespace

Action declare_explain(Arguments& arguments) {
  auto text = std::make_shared<std::string>();
  arguments.add("PID", *text, "Process of a program that was started with 'gpuctl run'").required();

  return [text](Context& context) -> Outcome<int> {
    const auto pid = parse_integer(*text);
    if (!pid || *pid <= 0)
      return usage("PID: '" + *text +
                   "' is not a process id; 'gpuctl top --once' shows those of the attached programs");
    const auto reply = ask(context, "Explain", {{"pid", *pid}});
    if (!reply) return not_explained(context, *pid, reply.error());
    struct Explained {
      ipc::Client client;
      ipc::Slice slice;
      std::vector<ipc::Kernel> kernels;
    };
    auto explained = decode_reply(*reply, [](ipc::Fields& fields) {
      Explained e;
      ipc::Fields client = fields.object("client");
      read(client, e.client);
      ipc::Fields slice = fields.object("slice");
      read(slice, e.slice);
      e.kernels = ipc::read_list<ipc::Kernel>(fields, "kernels");
      return e;
    });
    if (!explained) return explained.error();
    if (context.json) {
      print_json(context, *reply);
      return kExitOk;
    }
    context.out << explained->client.pid << "  " << printable(explained->client.command) << "  in slice "
                << printable(explained->client.slice) << '\n';
    if (const std::string bounds = bounds_text(explained->slice); !bounds.empty()) context.out << bounds << '\n';
    if (is_frozen(explained->slice)) context.out << "frozen: it gets no SMs until it is thawed\n";
    if (explained->client.swap_now) context.out << "swapping: " << printable(*explained->client.swap_now) << '\n';
    if (explained->slice.quota_now) context.out << "throttled: " << printable(*explained->slice.quota_now) << '\n';
    if (explained->slice.isolation_now)
      context.out << "isolation auto, now " << printable(*explained->slice.isolation_now) << '\n';
    const auto ruling = ruling_of(context, explained->client);
    if (!ruling) return ruling.error();
    for (const std::string& line : in_force_lines(explained->client, *ruling)) context.out << line << '\n';
    for (const std::string& line : turn_lines(explained->client)) context.out << line << '\n';
    for (const std::string& line : latency_lines(explained->client)) context.out << line << '\n';
    context.out << '\n';
    if (explained->kernels.empty()) {
      context.out << "no kernel is shown: none was reported yet, or its user's are not for you\n";
    } else {
      for (const std::string& line : kernel_table(std::move(explained->kernels)).lines()) context.out << line << '\n';
    }
    return kExitOk;
  };
}

}  // namespace gpuctl::cli
