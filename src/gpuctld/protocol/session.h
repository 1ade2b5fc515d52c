// One connection of the Varlink service: framing, replies in order, streams, descriptors, and the patience with its
// peer. One thread runs the io_context; no other thread may call anything here.
#pragma once

#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gpuctld/budgets/patience.h"
#include "gpuctld/protocol/peer.h"
#include "ipc/framing.h"
#include "ipc/message.h"
#include "ipc/unique_fd.h"

namespace gpuctl::daemon {

/// How long one message may be. Calls take some hundred bytes. Clients report thousands of kernels and may send up to
/// ipc::kMaxMessageBytes.
inline constexpr std::size_t kMaxStrangerBytes = 64u << 10;
inline constexpr std::size_t kMaxRootBytes = 1u << 20;
inline constexpr std::size_t kMaxFdsPerReply = 4;

/// What a method answers.
struct Answer {
  ipc::Reply reply;
  std::vector<ipc::UniqueFd> fds;  ///< sent with the reply, then closed here; at most kMaxFdsPerReply
  /// Set: the call wanted `more`. The same call is served again after this time, and the replies continue.
  std::optional<std::chrono::milliseconds> again;
  bool silent = false;  ///< of a call that streams already: nothing is sent, and it is served again
  bool later = false;   ///< nothing is sent yet: Session::finish() gives the answer
  /// Set: the call that comes next within this time belongs to this one. It is charged as any, and waits for no budget.
  std::chrono::milliseconds next_within{0};
  double cost = 1;  ///< for the budget of the user: of a look-up, 1
};

class VarlinkServer;

/// The reply under way.
struct Outgoing {
  std::string bytes;
  std::size_t sent = 0;
  std::vector<ipc::UniqueFd> fds;

  /// It was sent, or is not sent any more: its memory is given back.
  void clear();
};

/// A connection that another server goes on with: its socket, the bytes that were read and belong to no call that was
/// served, and the rest of the reply under way.
struct HandedOver {
  ipc::UniqueFd socket;
  std::string read;
  Outgoing out;
  bool closing = false;  ///< it is to be closed after that reply
};

/// Serves one call in each turn that the server gives it (VarlinkServer); so many that wait here hold up no other
/// connection. Reads nothing while its user is over the budget, and no further while a reply is not sent. Its members
/// are the state of one conversation.
class Session : public std::enable_shared_from_this<Session> {
 public:
  using Socket = boost::asio::local::stream_protocol::socket;
  Session(Socket socket, VarlinkServer& server);

  const Peer& peer() const { return peer_; }
  int socket() { return socket_.native_handle(); }
  /// It is an attached client's: longer messages are accepted, and it may be silent.
  void trust_as_client() { state_.attached = true; }
  bool attached() const { return state_.attached; }
  bool streaming() const { return streaming_.has_value(); }

  void start();
  /// In place of start(): goes on from there.
  void go_on_from(HandedOver before);
  void close();
  /// Closes it here only: the peer notices nothing. A call that was answered with `later`, or that streams, is
  /// forgotten.
  HandedOver hand_over();

  /// Its turn: serves one call, or reads.
  void turn();
  /// It does not wait for a turn: the call that comes goes with the last one.
  bool goes_before() const;

  /// Gives the answer to the call that was answered with `later`. Not to be called from within that call.
  void finish(Answer answer);

  /// The call that streams is served again before its time. Nothing if none does.
  void wake();

  /// Closes it if its peer has kept it waiting for too long, or is gone and would have to wait for its budget: what it
  /// sent before it went could be served for many minutes, and each connection takes a descriptor.
  void check_patience(std::uint64_t now_ns);

 private:
  /// What it is doing.
  struct State {
    bool attached = false, closed = false, closing = false;
    bool reading = false;  ///< waits for bytes
    bool turn = false;     ///< waits for its turn
    bool due = false;      ///< it streams, and it is time for the next reply
  };
  void go_on();
  void take_turn();
  void read();
  bool take(std::string_view bytes);
  bool count_kept();
  void serve_one();
  void serve(const ipc::Call& call);
  void answer(const ipc::Call& call, Answer answer);
  void send();
  void sent();
  void stream_again();
  void fail_and_close(std::string_view parameter);
  void charge(double calls, std::size_t bytes);
  void note_patience();
  std::size_t most_bytes() const;

  Socket socket_;
  VarlinkServer& server_;
  Peer peer_;
  boost::asio::steady_timer timer_;  ///< of the stream
  ipc::MessageSplitter splitter_;
  std::size_t counted_ = 0;  ///< memory of splitter_ and out_ that counts for the user's budget, in bytes
  State state_;
  Patience patience_;
  Outgoing out_;
  std::optional<ipc::Call> streaming_;
  std::optional<ipc::Call> unanswered_;  ///< its answer comes later; meanwhile no other call is served
  std::chrono::milliseconds interval_{};
  std::uint64_t before_until_ns_ = 0;  ///< goes_before() until then
};

}  // namespace gpuctl::daemon
