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

Answer invalid(const std::string& field, const std::string& reason) {
  return refuse_own("InvalidValue", {{"field", ipc::to_utf8(field)}, {"reason", ipc::to_utf8(reason)}});
}

Answer invalid(const ipc::Fields& fields) {
  return invalid(fields.field(), fields.reason());
}

Answer refuse(const sched::SliceError& error) {
  return {to_reply(error), {}, {}};
}

sched::Caller caller(const Session& session) {
  return {session.peer().uid, session.peer().gids};
}

}  // namespace gpuctl::daemon
