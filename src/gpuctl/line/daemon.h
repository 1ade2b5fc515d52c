// How verbs call gpuctld: a call gives its reply, or a Failure that is ready to be printed.
#pragma once

#include <boost/json/object.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "gpuctl/line/verb.h"
#include "gpuctl/text/failure.h"
#include "ipc/codec.h"
#include "ipc/connection.h"

namespace gpuctl::cli {

class Daemon {
 public:
  static Outcome<Daemon> connect(const Context& context);

  /// Calls io.gpuctl.`member`. If the daemon refuses, that is kExitRefused with its reason and, for a slice that does
  /// not exist, a similar name. Any other failure is kExitUnreachable.
  Outcome<boost::json::object> call(std::string_view member, boost::json::object parameters = {},
                                    std::chrono::milliseconds timeout = ipc::kDefaultTimeout);

  /// Starts a call with `more`; the replies come from next().
  Outcome<void> start(std::string_view member, boost::json::object parameters);
  Outcome<boost::json::object> next(std::chrono::milliseconds timeout = ipc::kNoTimeout);

  /// For poll(2) while waiting for next().
  const ipc::Connection& connection() const { return connection_; }
  ipc::Connection& connection() { return connection_; }

 private:
  explicit Daemon(ipc::Connection connection) : connection_(std::move(connection)) {}
  Outcome<boost::json::object> judge(const Result<ipc::Reply>& reply);
  Failure unreachable(const std::string& what) const;

  ipc::Connection connection_;
  std::string socket_;
};

/// connect() and one call().
Outcome<boost::json::object> ask(const Context& context, std::string_view member, boost::json::object parameters = {});

/// ask() for a change of a slice. What the daemon notes about it goes to the standard error output: the change is made.
Outcome<boost::json::object> change(Context& context, std::string_view member, boost::json::object parameters);

/// hint() for the path of a slice that is none of these.
std::string hint_of(std::string_view path, const std::vector<ipc::Slice>& slices);

/// The reply, or a part of it, as a struct. If it does not fit, that is the daemon's fault.
template <class T>
Outcome<T> decode(const Result<T>& read) {
  if (read) return *read;
  return Failure{kExitUnreachable, "the daemon's reply is not understood: " + read.error().message};
}

/// `body(Fields&)` reads `reply` and returns the value.
template <class Body>
auto decode_reply(const boost::json::object& reply, Body body)
    -> Outcome<decltype(body(std::declval<ipc::Fields&>()))> {
  ipc::Fields fields(reply);
  auto value = body(fields);
  if (fields.ok()) return value;
  return Failure{kExitUnreachable, "the daemon's reply is not understood: " + fields.error().message};
}

/// What GetSlice replies.
struct SliceWithClients {
  ipc::Slice slice;
  std::vector<ipc::Client> clients;
};
Outcome<SliceWithClients> decode_slice(const boost::json::object& reply);

/// One JSON document and a newline.
void print_json(Context& context, const boost::json::object& object);

}  // namespace gpuctl::cli
