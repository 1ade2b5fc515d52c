#include <ostream>

#include "gpuctl/line/daemon.h"
#include "gpuctl/line/verb.h"
#include "gpuctl/views/slice_rows.h"

namespace gpuctl::cli {

Action declare_list(Arguments&) {
  return [](Context& context) -> Outcome<int> {
    const auto reply = ask(context, "ListSlices");
    if (!reply) return reply.error();
    const auto slices = decode_reply(*reply, [](ipc::Fields& f) { return ipc::read_list<ipc::Slice>(f, "slices"); });
    if (!slices) return slices.error();
    if (context.json) {
      print_json(context, *reply);
    } else {
      for (const std::string& line : slice_table(*slices).lines()) context.out << line << '\n';
    }
    return kExitOk;
  };
}

}  // namespace gpuctl::cli
