#include "gpuctl/line/daemon.h"

#include <ostream>

#include "gpuctl/text/error_text.h"
#include "gpuctl/text/suggest.h"
#include "gpuctl/text/table.h"
#include "ipc/interface.h"

namespace gpuctl::cli {
namespace {

ipc::Call make_call(std::string_view member, boost::json::object parameters) {
  ipc::Call call;
  call.method = std::string(ipc::kInterface) + '.' + std::string(member);
  call.parameters = std::move(parameters);
  return call;
}

}  // namespace

std::string hint_of(std::string_view path, const std::vector<ipc::Slice>& slices) {
  std::vector<std::string> names;
  for (const ipc::Slice& slice : slices) names.push_back(slice.path);
  return hint(path, names);
}

Failure Daemon::unreachable(const std::string& what) const {
  return {kExitUnreachable, "gpuctld at " + socket_ + ": " + what};
}

Outcome<Daemon> Daemon::connect(const Context& context) {
  Result<ipc::Connection> connection = ipc::Connection::open(context.socket);
  if (!connection) return Failure{kExitUnreachable, connection.error().message};
  Daemon daemon(std::move(*connection));
  daemon.socket_ = context.socket;
  return daemon;
}

Outcome<boost::json::object> Daemon::judge(const Result<ipc::Reply>& reply) {
  if (!reply) return unreachable(reply.error().message);
  if (reply->error.empty()) return reply->parameters;
  std::string text = error_text(*reply);
  if (reply->error == std::string(ipc::kInterface) + ".NoSuchSlice") {
    const boost::json::value* path = reply->parameters.if_contains("path");
    const Result<ipc::Reply> list = connection_.call(make_call("ListSlices", {}));
    if (path != nullptr && path->is_string() && list && list->error.empty()) {
      ipc::Fields fields(list->parameters);
      const auto slices = ipc::read_list<ipc::Slice>(fields, "slices");
      if (fields.ok()) text += hint_of(std::string_view(path->get_string()), slices);
    }
  }
  return Failure{kExitRefused, text};
}

Outcome<boost::json::object> Daemon::call(std::string_view member, boost::json::object parameters,
                                          std::chrono::milliseconds timeout) {
  return judge(connection_.call(make_call(member, std::move(parameters)), timeout));
}

Outcome<void> Daemon::start(std::string_view member, boost::json::object parameters) {
  ipc::Call call = make_call(member, std::move(parameters));
  call.more = true;
  if (const Result<void> sent = connection_.send(call); !sent) return unreachable(sent.error().message);
  return {};
}

Outcome<boost::json::object> Daemon::next(std::chrono::milliseconds timeout) {
  return judge(connection_.receive(timeout));
}

Outcome<boost::json::object> ask(const Context& context, std::string_view member, boost::json::object parameters) {
  Outcome<Daemon> daemon = Daemon::connect(context);
  if (!daemon) return daemon.error();
  return daemon->call(member, std::move(parameters));
}

Outcome<boost::json::object> change(Context& context, std::string_view member, boost::json::object parameters) {
  auto reply = ask(context, member, std::move(parameters));
  if (!reply || !reply->contains("notes")) return reply;
  const auto read = [](ipc::Fields& fields) { return fields.texts("notes"); };
  const Outcome<std::vector<std::string>> notes = decode_reply(*reply, read);
  if (!notes) return notes.error();
  for (const std::string& note : *notes) context.err << "note: " << printable(note) << '\n';
  return reply;
}

Outcome<SliceWithClients> decode_slice(const boost::json::object& reply) {
  return decode_reply(reply, [](ipc::Fields& fields) {
    SliceWithClients result;
    ipc::Fields slice = fields.object("slice");
    read(slice, result.slice);
    result.clients = ipc::read_list<ipc::Client>(fields, "clients");
    return result;
  });
}

void print_json(Context& context, const boost::json::object& object) {
  context.out << ipc::to_text(object) << '\n';
}

}  // namespace gpuctl::cli
