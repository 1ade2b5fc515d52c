#include "gpuctld/protocol/answers.h"

#include "gpuctld/protocol/convert.h"
#include "ipc/codec.h"
#include "ipc/interface.h"

namespace gpuctl::daemon {

namespace json = boost::json;

Answer success(json::object parameters) {
  return {ipc::Reply{std::move(parameters), false, {}}, {}, {}};
}

Answer refuse(std::string_view error, json::object parameters) {
  return {ipc::Reply{std::move(parameters), false, std::string(error)}, {}, {}};
}

Answer refuse_own(const char* error, json::object parameters) {
  return refuse(std::string(ipc::kInterface) + "." + error, std::move(parameters));
}

Answer refuse_of_user(std::uint32_t uid) {
  return refuse_own("PermissionDenied", {{"path", "/"}, {"uid", uid}});
}

Answer invalid(const std::string& field, const std::string& reason) {
  return refuse_own("InvalidValue", {{"field", ipc::to_utf8(field)}, {"reason", ipc::to_utf8(reason)}});
}

Answer invalid(const ipc::Fields& fields) {
  return invalid(fields.field(), fields.reason());
}

Answer refuse(const sched::SliceError& error) {
  return {to_reply(error), {}, {}};
}

std::optional<Answer> about_service(const ipc::Call& call) {
  if (call.interface() == ipc::kInterface) return std::nullopt;
  if (call.interface() != ipc::kServiceInterface)
    return refuse(ipc::kInterfaceNotFound, {{"interface", call.interface()}});
  if (call.member() == "GetInfo")
    return success({{"vendor", "gpuctl"},
                    {"product", "gpuctld"},
                    {"version", GPUCTL_VERSION},
                    {"url", ""},
                    {"interfaces", {ipc::kServiceInterface, ipc::kInterface}}});
  if (call.member() != "GetInterfaceDescription") return refuse(ipc::kMethodNotFound, {{"method", call.method}});
  ipc::Fields fields(call.parameters);
  const std::string name = fields.text("interface");
  if (!fields.ok()) return refuse(ipc::kInvalidParameter, {{"parameter", "interface"}});
  const std::string_view text = ipc::interface_description(name);
  if (text.empty()) return refuse(ipc::kInterfaceNotFound, {{"interface", name}});
  return success({{"description", text}});
}

sched::Caller caller(const Session& session) {
  return {session.peer().uid, session.peer().gids};
}

}  // namespace gpuctl::daemon
