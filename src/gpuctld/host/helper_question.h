// One line for a helper of the daemon's that answers as another user behind a unix socket of the service manager
// (`gpuctld --mps-control`, `--limit-memory`), and all that it answers.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <functional>
#include <memory>
#include <string>

#include "base/result.h"

namespace gpuctl::daemon {

/// Keeps itself alive until the answer is there. Everything is called on the thread that runs the io_context.
class HelperQuestion : public std::enable_shared_from_this<HelperQuestion> {
 public:
  /// The answer, or an error: "cannot give commands for MPS at PATH: ...".
  using Done = std::function<void(const Result<std::string>& answer)>;

  /// `line`: with its end. `what` begins the error: "cannot give commands for MPS". `done` is called once, later,
  /// unless cancel() comes first. It is an error if the path is too long for a socket.
  static Result<std::shared_ptr<HelperQuestion>> ask(boost::asio::io_context& context, const std::string& socket,
                                                     std::string line, std::string what, Done done);

  /// Hangs up. What was asked for may be done all the same.
  void cancel();

 private:
  HelperQuestion(boost::asio::io_context& context, std::string path, std::string text, std::string what, Done done);
  void connect();
  void write();
  void read();
  bool failed(boost::system::error_code error);
  void finish(const Result<std::string>& answer);

  boost::asio::local::stream_protocol::socket connection_;
  std::string path_, text_;  ///< what is sent, then what is read
  std::string what_;
  Done done_;
};

}  // namespace gpuctl::daemon
