#include <ostream>

#include "base/plural.h"
#include "gpuctl/line/daemon.h"
#include "gpuctl/line/verb.h"
#include "gpuctl/text/table.h"
#include "gpuctl/text/units.h"

namespace gpuctl::cli {
namespace {

void print_status(std::ostream& out, const ipc::Status& status, const std::string& socket) {
  out << "gpuctld " << printable(status.version) << " at " << socket << ", up " << format_duration_s(status.uptime_s)
      << ", " << plural(status.slices, "slice") << ", " << plural(status.clients, "client")
      << (status.faults == 0 ? "" : ", " + plural(status.faults, "fault")) << "\n\n";
  using enum Table::Align;
  Table table({{"GPU", right},
               {"NAME", left},
               {"KIND", left},
               {"MODE", left},
               {"SMS", right},
               {"MEMORY", right},
               {"UUID", left}});
  for (const ipc::Device& d : status.devices)
    table.add_row({std::to_string(d.index), printable(d.name), printable(d.kind), printable(d.mode),
                   std::to_string(d.sms), format_bytes(d.memory_bytes), printable(d.uuid)});
  for (const std::string& line : table.lines()) out << line << '\n';
  if (!status.notes.empty()) out << '\n';
  for (const std::string& note : status.notes) out << "note: " << printable(note) << '\n';
}

}  // namespace

Action declare_status(Arguments&) {
  return [](Context& context) -> Outcome<int> {
    const auto reply = ask(context, "GetStatus");
    if (!reply) return reply.error();
    const auto status = decode(ipc::from_json<ipc::Status>(*reply));
    if (!status) return status.error();
    if (context.json) {
      print_json(context, *reply);
    } else {
      print_status(context.out, *status, context.socket);
    }
    return kExitOk;
  };
}

}  // namespace gpuctl::cli
