// A Varlink service on unix stream sockets: framing, replies in order, streams, descriptors. What the methods do is in
// manager_varlink.cc. One thread runs the io_context; no other thread may call anything here.
#pragma once

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "gpuctld/protocol/peer.h"
#include "ipc/framing.h"
#include "ipc/message.h"
#include "ipc/unique_fd.h"

namespace gpuctl::daemon {

/// How much of one message the daemon holds for a peer that is not an attached client. Clients report thousands of
/// kernels and may send up to ipc::kMaxMessageBytes.
inline constexpr std::size_t kMaxStrangerBytes = 1u << 20;
/// Further connections wait in the socket's queue.
inline constexpr std::size_t kMaxConnections = 4096;
/// Further connections of the same user, except root, are closed at once, so that no user can keep the others out.
inline constexpr std::size_t kMaxConnectionsPerUser = 1024;
inline constexpr std::size_t kMaxFdsPerReply = 4;

/// What a method answers.
struct Answer {
  ipc::Reply reply;
  std::vector<ipc::UniqueFd> fds;  ///< sent with the reply, then closed here; at most kMaxFdsPerReply
  /// Set: the call wanted `more`. The same call is served again after this time, and the replies continue.
  std::optional<std::chrono::milliseconds> again;
  bool later = false;  ///< nothing is sent yet: Session::finish() gives the answer
};

class VarlinkServer;

/// One connection. Reads no further while a reply is not sent, so a peer that does not read cannot pile up replies.
/// Its members are the state of one conversation: the bytes read, the call under way, the bytes to send.
class Session : public std::enable_shared_from_this<Session> {
 public:
  using Socket = boost::asio::local::stream_protocol::socket;
  Session(Socket socket, VarlinkServer& server);

  const Peer& peer() const { return peer_; }
  int socket() { return socket_.native_handle(); }
  /// For an attached client: longer messages are accepted.
  void trust_with_long_messages() { attached_ = true; }

  void start();
  void close();

  /// Gives the answer to the call that was answered with `later`. Not to be called from within that call.
  void finish(Answer answer);

 private:
  void read();
  bool take(std::string_view bytes);
  void serve_next();
  void serve(const ipc::Call& call);
  void answer(const ipc::Call& call, Answer answer);
  void send();
  void sent();
  void fail_and_close(std::string_view parameter);

  Socket socket_;
  VarlinkServer& server_;
  Peer peer_;
  boost::asio::steady_timer timer_;
  ipc::MessageSplitter splitter_;
  std::size_t unfinished_bytes_ = 0;
  bool attached_ = false, closed_ = false, reading_ = false, closing_ = false;
  std::string out_;
  std::size_t out_sent_ = 0;
  std::vector<ipc::UniqueFd> out_fds_;
  std::optional<ipc::Call> streaming_;
  std::optional<ipc::Call> unanswered_;  ///< its answer comes later; meanwhile no other call is served
  std::chrono::milliseconds interval_{};
  std::array<char, 16384> buffer_;
};

/// Listens and keeps the sessions.
class VarlinkServer {
 public:
  struct Handler {
    std::function<Answer(Session&, const ipc::Call&)> call;
    std::function<void(Session&)> closed;  ///< once per session
  };

  /// Serves `listener`, a listening unix stream socket, until stop().
  VarlinkServer(boost::asio::io_context& context, int listener, Handler handler);

  /// Closes the listener and every connection.
  void stop();

  std::size_t connections() const { return sessions_.size(); }

 private:
  friend class Session;
  void accept();
  bool welcome(const Session& session) const;
  void forget(Session& session);

  boost::asio::io_context& context_;
  boost::asio::local::stream_protocol::acceptor acceptor_;
  boost::asio::steady_timer retry_;
  Handler handler_;
  std::set<std::shared_ptr<Session>> sessions_;
  bool accepting_ = false, stopped_ = false;
};

}  // namespace gpuctl::daemon
