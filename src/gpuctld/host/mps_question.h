// One command for MPS, given through a unix socket where `gpuctld --mps-control` answers as another user.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <functional>
#include <memory>
#include <string>

#include "base/result.h"

namespace gpuctl::daemon {

/// Keeps itself alive until the answer is there. Everything is called on the thread that runs the io_context.
class MpsQuestion : public std::enable_shared_from_this<MpsQuestion> {
 public:
  /// The control program's output, or an error that names the socket.
  using Done = std::function<void(const Result<std::string>& output)>;

  /// `command`: without the end of its line. `done` is called once, later, unless cancel() comes first. It is an error
  /// if the path is too long for a socket.
  static Result<std::shared_ptr<MpsQuestion>> ask(boost::asio::io_context& context, const std::string& socket,
                                                  const std::string& command, Done done);

  /// Hangs up. What was asked for may be done all the same.
  void cancel();

 private:
  MpsQuestion(boost::asio::io_context& context, std::string path, std::string text, Done done);
  void connect();
  void write();
  void read();
  bool failed(boost::system::error_code error);
  void finish(const Result<std::string>& output);

  boost::asio::local::stream_protocol::socket connection_;
  std::string path_, text_;  ///< what is sent, then what is read
  Done done_;
};

}  // namespace gpuctl::daemon
