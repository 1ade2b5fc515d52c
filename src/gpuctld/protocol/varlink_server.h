// A Varlink service on unix stream sockets: it listens and keeps the sessions. What the methods do is in
// manager_varlink.cc. One thread runs the io_context; no other thread may call anything here.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <set>

#include "gpuctld/budgets/user_budgets.h"
#include "gpuctld/protocol/session.h"

namespace gpuctl::daemon {

/// Connections of users without a budget count too. Further ones wait in the socket's queue.
inline constexpr std::size_t kMaxConnections = 4096;
static_assert(kBudgetOfAll.connections < kMaxConnections, "some are kept for root");

class VarlinkServer {
 public:
  struct Handler {
    std::function<Answer(Session&, const ipc::Call&)> call;
    std::function<void(Session&)> closed;        ///< once per session
    std::function<void(std::uint32_t)> refused;  ///< a connection of this user, who has too many
  };

  /// Serves `listener`, a listening unix stream socket, until stop(). `budgets` must outlive the server.
  VarlinkServer(boost::asio::io_context& context, int listener, UserBudgets& budgets, Handler handler);

  /// Closes the listener and every connection.
  void stop();

  std::size_t connections() const { return sessions_.size(); }
  /// Closes the connections whose peers have kept it waiting for too long. It does so by itself too.
  void check_patience(std::uint64_t now_ns);

  /// Connections on which replies continue.
  std::size_t streams() const;

 private:
  friend class Session;
  void accept();
  void watch_patience();
  void forget(Session& session);

  boost::asio::io_context& context_;
  boost::asio::local::stream_protocol::acceptor acceptor_;
  boost::asio::steady_timer retry_, patience_;
  UserBudgets& budgets_;
  Handler handler_;
  std::set<std::shared_ptr<Session>> sessions_;
  bool accepting_ = false, stopped_ = false;
};

}  // namespace gpuctl::daemon
