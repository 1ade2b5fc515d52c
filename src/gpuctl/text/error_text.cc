#include "gpuctl/text/error_text.h"

#include <string_view>
#include <utility>

#include "base/in_container.h"
#include "base/one_line.h"
#include "base/plural.h"
#include "gpuctl/text/units.h"
#include "ipc/fields.h"
#include "ipc/interface.h"

namespace gpuctl::cli {
namespace {

std::string quoted(const std::string& text) {
  return "'" + text + "'";
}

/// The sentence for an error of io.gpuctl, from its parameters. Empty for an error not known here.
std::string gpuctl_error(std::string_view name, ipc::Fields& p) {
  if (name == "NoSuchSlice") return "slice " + quoted(p.text("path")) + " does not exist";
  if (name == "SliceExists") return "slice " + quoted(p.text("path")) + " exists already";
  if (name == "SliceBusy") {
    const std::int64_t clients = p.integer("clients");
    const std::int64_t children = p.integer("children");
    std::string holders = clients == 0 ? "" : plural(clients, "running program");
    if (children != 0) holders += (holders.empty() ? "" : " and ") + plural(children, "child slice");
    if (p.has("programs")) {
      const char* between = ": ";
      for (const std::string& program : p.texts("programs")) holders += std::exchange(between, ", ") + program;
    }
    return "slice " + quoted(p.text("path")) + " is in use: it has " + holders;
  }
  if (name == "InvalidValue") {
    const std::string field = p.text("field");
    return (field == "path" ? "slice name" : field) + ": " + p.text("reason");
  }
  if (name == "ReserveDoesNotFit")
    return "reserve: " + quoted(p.text("path")) + " asks for " + plural(p.integer("asked"), "SM") +
           (p.has("gpu") ? " of GPU " + std::to_string(p.integer("gpu")) : "") + " and its parent can give " +
           std::to_string(p.integer("available"));
  if (name == "PermissionDenied" && p.has("uid"))
    return "permission denied: user " + std::to_string(p.integer("uid")) + " is asked for, which root alone may";
  if (name == "PermissionDenied")
    return "permission denied for slice " + quoted(p.text("path")) + ": root may do that, or who owns a slice above it";
  if (name == "NoSlice" && p.has("path"))
    return "there is no slice " + quoted(p.text("path")) + ", or you may not run programs in it";
  if (name == "NoSlice") return "no slice is named, and no slice has a setting join for you; give one: --slice NAME";
  if (name == "NoSuchClient")
    return "process " + std::to_string(p.integer("pid")) + " is not attached to a slice" +
           (container_slice().empty() ? "" : "; its id on the host is asked for, which 'gpuctl top --once' shows");
  if (name == "NotAttached") return "this connection is not attached to a slice";
  if (name == "OtherVersion") return "libgpuslice and gpuctld are of different versions";
  if (name == "Unavailable") return "the daemon cannot tell: " + p.text("reason");
  if (name == "NoGpu") return "gpuctld has no GPU to manage: " + p.text("reason");
  return {};
}

std::string service_error(std::string_view error, ipc::Fields& p) {
  if (error == ipc::kInterfaceNotFound) return "the service does not know the interface " + quoted(p.text("interface"));
  if (error == ipc::kMethodNotFound) return "the service does not know the method " + quoted(p.text("method"));
  if (error == ipc::kMethodNotImplemented) return "the service does not implement " + quoted(p.text("method"));
  if (error == ipc::kInvalidParameter) return "parameter " + quoted(p.text("parameter")) + " is missing or not valid";
  if (error == ipc::kServicePermissionDenied) return "permission denied";
  if (error == ipc::kExpectedMore) return "the method wants a call with 'more'";
  return {};
}

}  // namespace

std::string error_text(const ipc::Reply& reply) {
  ipc::Fields parameters(reply.parameters);
  const std::string_view error = reply.error;
  const bool ours = error.starts_with(ipc::kInterface) && error.substr(ipc::kInterface.size()).starts_with('.');
  const std::string text =
      ours ? gpuctl_error(error.substr(ipc::kInterface.size() + 1), parameters) : service_error(error, parameters);
  if (!text.empty() && parameters.ok()) return one_line(text);
  return one_line(reply.error + ' ' + ipc::to_text(reply.parameters));
}

}  // namespace gpuctl::cli
