#include "slurm/daemon.h"

#include "gpuctl/text/error_text.h"
#include "ipc/interface.h"

namespace gpuctl::slurm {

Answer<Daemon> Daemon::open(const std::string& socket) {
  Result<ipc::Connection> connection = ipc::Connection::open(socket);
  if (!connection) return Refusal(connection.error().message);
  return Daemon(socket, std::move(*connection));
}

Answer<boost::json::object> Daemon::call(std::string_view member, boost::json::object parameters,
                                         std::chrono::milliseconds timeout) {
  if (!connection_) {
    Answer<Daemon> anew = open(socket_);
    if (!anew) return anew.error();
    *this = std::move(*anew);
  }
  ipc::Call call;
  call.method = std::string(ipc::kInterface) + '.' + std::string(member);
  call.parameters = std::move(parameters);
  Result<ipc::Reply> reply = connection_->call(call, timeout);
  if (!reply) {
    connection_.reset();
    return Refusal("gpuctld: " + reply.error().message);
  }
  if (reply->error.empty()) return std::move(reply->parameters);
  return Refusal(cli::error_text(*reply), reply->error.substr(reply->error.rfind('.') + 1));
}

}  // namespace gpuctl::slurm
