// Calls of gpuctld for the plugin: a call gives its reply, or a line for a person.
#pragma once

#include <boost/json/object.hpp>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "ipc/connection.h"

namespace gpuctl::slurm {

struct Refusal {
  Refusal() = default;
  explicit Refusal(std::string text, std::string error_name = {})
      : message(std::move(text)), name(std::move(error_name)) {}

  std::string message;
  std::string name;  ///< "SliceExists"; empty: the daemon did not answer
};

template <class T>
using Answer = BasicResult<T, Refusal>;

class Daemon {
 public:
  static Answer<Daemon> open(const std::string& socket);
  /// Calls io.gpuctl.`member`; by a new connection if the last call had no answer.
  Answer<boost::json::object> call(std::string_view member, boost::json::object parameters = {},
                                   std::chrono::milliseconds timeout = ipc::kDefaultTimeout);

 private:
  Daemon(std::string socket, ipc::Connection connection)
      : socket_(std::move(socket)), connection_(std::move(connection)) {}

  std::string socket_;
  std::optional<ipc::Connection> connection_;  ///< none: a late answer would be taken for that to the next call
};

}  // namespace gpuctl::slurm
