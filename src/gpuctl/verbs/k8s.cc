// `gpuctl k8s resourceslice`: what a driver for Kubernetes publishes.
#include <unistd.h>

#include <array>
#include <memory>
#include <ostream>

#include "gpuctl/line/daemon.h"
#include "gpuctl/line/settings.h"
#include "gpuctl/line/verb.h"
#include "gpuctl/text/suggest.h"
#include "gpuctl/text/table.h"
#include "gpuctl/views/resource_slice.h"

namespace gpuctl::cli {
namespace {

constexpr const char* kResourceSlice = "resourceslice";
constexpr const char* kDriver = "gpu.gpuctl.io";
constexpr std::size_t kMostOfDriver = 63, kMostOfNode = 253;

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

Outcome<int> print_resource_slices(Context& context, const ResourceSlicePlan& plan) {
  Outcome<Daemon> daemon = Daemon::connect(context);
  if (!daemon) return daemon.error();
  const auto status = daemon->call("GetStatus");
  if (!status) return status.error();
  const auto list = daemon->call("ListSlices");
  if (!list) return list.error();
  const auto devices = decode_reply(*status, [](ipc::Fields& f) { return ipc::read_list<ipc::Device>(f, "devices"); });
  if (!devices) return devices.error();
  const auto slices = decode_reply(*list, [](ipc::Fields& f) { return ipc::read_list<ipc::Slice>(f, "slices"); });
  if (!slices) return slices.error();

  std::vector<std::string> notes;
  const boost::json::array made = resource_slices(plan, *devices, *slices, notes);
  if (context.json) {
    print_json(context, {{"apiVersion", "v1"}, {"kind", "List"}, {"items", made}});
  } else {
    for (const boost::json::value& each : made) context.out << "---\n" << to_yaml(each);
  }
  for (const std::string& note : notes) context.err << "note: " << note << '\n';
  return kExitOk;
}

}  // namespace

Action declare_k8s(Arguments& arguments) {
  auto what = std::make_shared<std::string>();
  arguments.add("WHAT", *what, "resourceslice: the slices of this node, for a driver for dynamic resource allocation")
      .required();
  auto plan = std::make_shared<ResourceSlicePlan>(ResourceSlicePlan{kDriver, host_name()});
  arguments.add("--node", plan->node, "Name of this node in Kubernetes (default: of this machine)").value("NAME");
  arguments.add("--driver", plan->driver, "Name of the driver (gpu.gpuctl.io)").value("NAME");
  auto named = std::make_shared<std::vector<std::string>>();
  arguments
      .add("--slice", *named, "A slice that is a device, whatever is below it; without this, those with none below")
      .value("NAME");

  return [what, plan, named](Context& context) -> Outcome<int> {
    if (*what != kResourceSlice)
      return usage("k8s: there is no '" + printable(*what) + "'" + hint(*what, {kResourceSlice}));
    if (const std::string problem = subdomain_problem(plan->driver, kMostOfDriver); !problem.empty())
      return usage("k8s: --driver: '" + printable(plan->driver) + "' " + problem);
    if (const std::string problem = subdomain_problem(plan->node, kMostOfNode); !problem.empty())
      return usage("k8s: --node: '" + printable(plan->node) + "' " + problem);
    for (const std::string& name : *named) {
      const Outcome<std::string> path = slice_path(name);
      if (!path) return path.error();
      plan->slices.push_back(*path);
    }
    return print_resource_slices(context, *plan);
  };
}

}  // namespace gpuctl::cli
