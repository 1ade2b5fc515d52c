#include "gpuctld/protocol/session.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/string_memory.h"
#include "gpuctld/clock.h"
#include "gpuctld/protocol/let_go.h"
#include "gpuctld/protocol/timed.h"
#include "gpuctld/protocol/varlink_server.h"
#include "ipc/interface.h"

namespace gpuctl::daemon {

namespace asio = boost::asio;
using boost::system::error_code;

void Outgoing::clear() {
  give_back(bytes);
  sent = 0;
  fds.clear();
}

/// Whether the other end of the connection is closed. What it sent before may still be there to be read.
static bool hung_up(int socket) {
  pollfd ends{socket, 0, 0};
  return ::poll(&ends, 1, 0) > 0 && (ends.revents & POLLHUP) != 0;
}

Session::Session(Socket socket, VarlinkServer& server)
    : socket_(std::move(socket)),
      server_(server),
      peer_(peer_of(socket_.native_handle())),
      timer_(socket_.get_executor()) {}

void Session::start() {
  go_on();
}

void Session::go_on_from(HandedOver before) {
  out_ = std::move(before.out);
  state_.closing = before.closing;
  if (!take(before.read)) return fail_and_close("message longer than the limit");
  if (!out_.bytes.empty()) send();
  go_on();
}

HandedOver Session::hand_over() {
  HandedOver handed{.read = splitter_.take_buffered(), .out = std::exchange(out_, {}), .closing = state_.closing};
  error_code failed;
  handed.socket.reset(socket_.release(failed));
  if (failed) handed.socket.release();
  close();
  return handed;
}

void Session::close() {
  if (state_.closed) return;
  state_.closed = true;
  const auto self = shared_from_this();
  timer_.cancel();
  server_.handler_.closed(*this);
  out_.clear();
  splitter_.take_buffered();
  count_kept();
  error_code failed;
  ipc::UniqueFd socket(socket_.is_open() ? socket_.release(failed) : -1);
  if (failed) socket.release();
  server_.forget(*this, std::move(socket));
}

/// Does the next thing: waits for its turn to serve a call that has arrived, or reads. Each thing that ends comes back
/// here.
void Session::go_on() {
  if (state_.closed || state_.turn) return;
  const bool has_call = splitter_.has_complete();
  if (out_.bytes.empty()) {
    if (state_.due || (has_call && !unanswered_ && !streaming_))
      take_turn();
    else if (!has_call && !goes_before() && server_.budgets_.wait(peer_.uid, now_ns()).count() > 0)
      take_turn();
    else if (!has_call)
      read();  // also to notice that the peer is gone
  }
  note_patience();
}

bool Session::goes_before() const {
  return before_until_ns_ != 0 && now_ns() < before_until_ns_;
}

void Session::take_turn() {
  state_.turn = true;
  server_.take_turn(shared_from_this());
}

/// Much may have happened since it asked for its turn.
void Session::turn() {
  state_.turn = false;
  if (state_.closed || !out_.bytes.empty()) return;
  const Timed timed(server_.budgets_, peer_.uid);
  const bool has_call = splitter_.has_complete();
  if (streaming_ && std::exchange(state_.due, false)) {
    serve(ipc::Call(*streaming_));
    return go_on();
  }
  if (has_call && !unanswered_ && !streaming_) return serve_one();
  if (!has_call) read();
  note_patience();
}

void Session::read() {
  if (state_.reading) return;
  state_.reading = true;
  socket_.async_wait(Socket::wait_read, [self = shared_from_this()](error_code error) {
    self->state_.reading = false;
    if (self->state_.closed) return;
    if (error) return self->close();
    std::array<char, 16384>& buffer = self->server_.read_buffer_;
    const Timed timed(self->server_.budgets_, self->peer_.uid);
    bool passed = false;
    const ssize_t size = receive(self->socket_.native_handle(), buffer, passed);
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) return self->read();
    if (size <= 0 || passed) return self->close();
    self->charge(0, static_cast<std::size_t>(size));
    if (!self->take({buffer.data(), static_cast<std::size_t>(size)}))
      return self->fail_and_close("message longer than the limit");
    self->go_on();
  });
}

std::size_t Session::most_bytes() const {
  if (state_.attached) return ipc::kMaxMessageBytes;
  return server_.budgets_.exempt(peer_.uid) ? kMaxRootBytes : kMaxStrangerBytes;
}

/// False if the peer sends more than it may without ending the message.
bool Session::take(std::string_view bytes) {
  splitter_.limit(most_bytes());
  return splitter_.feed(bytes).has_value() && count_kept();
}

/// Counts what is kept here for the peer. False if the user has no room for it.
bool Session::count_kept() {
  const std::size_t bytes = splitter_.memory() + memory_of(out_.bytes);
  const auto more = static_cast<std::ptrdiff_t>(bytes) - static_cast<std::ptrdiff_t>(counted_);
  if (!server_.budgets_.buffer(peer_.uid, more)) return false;
  counted_ = bytes;
  return true;
}

void Session::serve_one() {
  if (state_.closed) return;
  const auto message = splitter_.next();
  if (!message) return go_on();
  count_kept();
  if (auto call = ipc::decode_call(*message)) {
    serve(*call);
  } else {
    charge(1, 0);
    answer({}, {ipc::Reply{{{"parameter", call.error().message}}, false, std::string(ipc::kInvalidParameter)}});
  }
  go_on();
}

void Session::serve(const ipc::Call& call) {
  const bool went_before = goes_before();
  Answer result = server_.handler_.call(*this, call);
  charge(result.cost, 0);
  // What goes with another call has none to go with it: nobody is served for ever without a turn.
  const auto next = static_cast<std::uint64_t>(std::chrono::nanoseconds(result.next_within).count());
  before_until_ns_ = next == 0 || went_before ? 0 : now_ns() + next;
  if (state_.closed) return;
  if (result.later)
    unanswered_ = call;
  else
    answer(call, std::move(result));
}

void Session::finish(Answer late) {
  if (state_.closed || !unanswered_) return;
  const ipc::Call call = *std::exchange(unanswered_, std::nullopt);
  const auto self = shared_from_this();
  answer(call, std::move(late));
  go_on();
}

void Session::answer(const ipc::Call& call, Answer answer) {
  if (call.oneway) return;
  if (call.more && answer.again && answer.reply.error.empty()) {
    answer.reply.continues = true;
    interval_ = *answer.again;
    if (answer.silent && streaming_) return stream_again();
    if (!streaming_) streaming_ = call;
  } else {
    streaming_.reset();
  }
  out_ = {ipc::encode(std::move(answer.reply)), 0, std::move(answer.fds)};
  charge(0, out_.bytes.size());
  send();
  if (!out_.bytes.empty() && !count_kept()) close();  // replies that nobody reads take all its user may have here
}

/// Sends as much as the socket takes and waits for it to take the rest. Descriptors go with the first byte.
void Session::send() {
  while (!state_.closed && out_.sent < out_.bytes.size()) {
    iovec data{out_.bytes.data() + out_.sent, out_.bytes.size() - out_.sent};
    msghdr message{};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * kMaxFdsPerReply)> control{};
    if (out_.sent == 0 && !out_.fds.empty() && out_.fds.size() <= kMaxFdsPerReply) {
      message.msg_control = control.data();
      message.msg_controllen = CMSG_SPACE(sizeof(int) * out_.fds.size());
      cmsghdr* header = CMSG_FIRSTHDR(&message);
      header->cmsg_level = SOL_SOCKET;
      header->cmsg_type = SCM_RIGHTS;
      header->cmsg_len = CMSG_LEN(sizeof(int) * out_.fds.size());
      std::array<int, kMaxFdsPerReply> fds{};
      for (std::size_t i = 0; i < out_.fds.size(); ++i) fds[i] = out_.fds[i].get();
      std::memcpy(CMSG_DATA(header), fds.data(), sizeof(int) * out_.fds.size());
    }
    const ssize_t n = ::sendmsg(socket_.native_handle(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n >= 0) {
      out_.sent += static_cast<std::size_t>(n);
    } else if (errno == EAGAIN) {
      return socket_.async_wait(Socket::wait_write, [self = shared_from_this()](error_code error) {
        if (self->state_.closed) return;
        if (error) return self->close();
        const Timed timed(self->server_.budgets_, self->peer_.uid);
        self->send();
        self->go_on();
      });
    } else if (errno != EINTR) {
      return close();
    }
  }
  if (!state_.closed) sent();
}

void Session::sent() {
  out_.clear();
  count_kept();
  if (state_.closing) return close();
  if (streaming_) stream_again();
}

void Session::stream_again() {
  timer_.expires_after(interval_);
  timer_.async_wait([self = shared_from_this()](error_code error) {
    if (error || self->state_.closed || !self->streaming_) return;
    self->state_.due = true;
    self->go_on();
  });
}

void Session::wake() {
  if (state_.closed || !streaming_) return;
  state_.due = true;
  go_on();
}

void Session::fail_and_close(std::string_view parameter) {
  state_.closing = true;
  if (!out_.bytes.empty()) return;  // a reply is on its way; the connection ends after it
  streaming_.reset();
  answer({}, {ipc::Reply{{{"parameter", parameter}}, false, std::string(ipc::kInvalidParameter)}});
  note_patience();
}

void Session::charge(double calls, std::size_t bytes) {
  server_.budgets_.charge(peer_.uid, calls, bytes, now_ns());
}

void Session::note_patience() {
  const bool own_work = state_.turn || unanswered_ || splitter_.has_complete();
  const bool may_be_silent = state_.attached || streaming_ || server_.budgets_.exempt(peer_.uid);
  patience_.note(!out_.bytes.empty()       ? Awaits::reader
                 : own_work                ? Awaits::nothing
                 : splitter_.mid_message() ? Awaits::rest_of_call
                 : may_be_silent           ? Awaits::nothing
                                           : Awaits::call,
                 now_ns());
}

void Session::check_patience(std::uint64_t now_ns) {
  if (state_.closed) return;
  const Timed timed(server_.budgets_, peer_.uid);
  const bool in_debt = server_.budgets_.wait(peer_.uid, now_ns).count() > 0;
  // Of one that streams nothing is read while a call waits behind, and nothing is sent while there is nothing to tell.
  if (patience_.over(now_ns) || ((in_debt || streaming_) && hung_up(socket_.native_handle()))) close();
}

}  // namespace gpuctl::daemon
