// A Varlink service on unix stream sockets: it listens and keeps the sessions. What the methods do is in
// manager_varlink.cc. One thread runs the io_context; no other thread may call anything here.
#pragma once

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <set>
#include <vector>

#include "gpuctld/budgets/turns.h"
#include "gpuctld/budgets/user_budgets.h"
#include "gpuctld/protocol/let_go.h"
#include "gpuctld/protocol/session.h"

namespace gpuctl::daemon {

/// Connections of users without a budget count too. Further ones wait in the socket's queue.
inline constexpr std::size_t kMaxConnections = 4096;
static_assert(kBudgetOfAll.connections < kMaxConnections, "some are kept for root");

/// Root's calls are served as they come, and so is a call that goes with the one before (Answer::next_within). Of all
/// others one is served in a turn of the loop, and users take turns, so root waits for no more than one of them.
/// Connections are taken, looked at and closed a few in a turn, however many there are.
class VarlinkServer {
 public:
  struct Handler {
    std::function<Answer(Session&, const ipc::Call&)> call;
    std::function<void(Session&)> closed;        ///< once per session
    std::function<void(std::uint32_t)> refused;  ///< a connection of this user, who has too many
  };

  /// Serves `listener`, a listening unix stream socket, until stop(). `budgets` must outlive the server.
  VarlinkServer(boost::asio::io_context& context, int listener, UserBudgets& budgets, Handler handler);

  /// Ends the listener and every connection, before the process ends: that closes them, as to close one with something
  /// unread may wait (let_go.h).
  void stop();
  /// Closes the listener, and gives the connections away: adopt() of another server goes on with them.
  std::vector<HandedOver> hand_over();
  /// Those that are more than their users may have are refused, as those that are accepted.
  void adopt(std::vector<HandedOver> connections);

  std::size_t connections() const { return sessions_.size(); }
  /// Closes the connections whose peers have kept it waiting for too long, in some turns. It does so by itself too, a
  /// part of all at a time.
  void check_patience(std::uint64_t now_ns);

  /// Connections on which replies continue.
  std::size_t streams() const;

 private:
  friend class Session;
  void accept();
  void accept_after(std::chrono::nanoseconds wait);
  bool accept_some();
  std::shared_ptr<Session> admit(ipc::UniqueFd fd, std::uint64_t began, bool& lacks_room);
  void take_turn(const std::shared_ptr<Session>& session);
  void serve_next();
  void serve(bool rests);
  void watch_patience();
  void look_at_all();
  void check_some(std::uint64_t now_ns, std::size_t many);
  bool make_room_for(std::uint32_t uid);
  void forget(Session& session, ipc::UniqueFd socket);

  boost::asio::io_context& context_;
  boost::asio::local::stream_protocol::acceptor acceptor_;
  boost::asio::steady_timer retry_, patience_;
  boost::asio::steady_timer rest_;
  UserBudgets& budgets_;
  LetGo let_go_;
  LetGo refused_;  ///< connections that nobody counts
  Handler handler_;
  std::set<std::shared_ptr<Session>> sessions_;
  std::vector<std::weak_ptr<Session>> unchecked_;  ///< whose patience is still to be checked
  std::size_t part_ = 0;                           ///< so many of them at a time
  int parts_ = 1;                                  ///< that all are
  Turns<std::shared_ptr<Session>> turns_;
  std::array<char, 16384> read_buffer_;  ///< of all sessions, because thousands may wait for bytes
  bool accepting_ = false, stopped_ = false;
  bool serving_ = false, resting_ = false;  ///< serve_next() is on its way, soon or after a rest
};

}  // namespace gpuctl::daemon
