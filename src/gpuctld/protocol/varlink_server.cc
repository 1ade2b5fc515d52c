#include "gpuctld/protocol/varlink_server.h"

#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <cerrno>
#include <cstring>

#include "ipc/interface.h"

namespace gpuctl::daemon {

namespace asio = boost::asio;
using boost::system::error_code;

namespace {
/// When accepting fails for lack of descriptors or memory, it is tried again after this time.
constexpr std::chrono::milliseconds kAcceptAgain{100};
}  // namespace

Session::Session(Socket socket, VarlinkServer& server)
    : socket_(std::move(socket)),
      server_(server),
      peer_(peer_of(socket_.native_handle())),
      timer_(socket_.get_executor()) {}

void Session::start() {
  read();
}

void Session::close() {
  if (closed_) return;
  closed_ = true;
  const auto self = shared_from_this();
  timer_.cancel();
  server_.handler_.closed(*this);
  error_code ignored;
  socket_.close(ignored);
  server_.forget(*this);
}

void Session::read() {
  if (closed_ || reading_) return;
  reading_ = true;
  socket_.async_read_some(asio::buffer(buffer_), [self = shared_from_this()](error_code error, std::size_t size) {
    self->reading_ = false;
    if (self->closed_) return;
    if (error) return self->close();
    if (!self->take({self->buffer_.data(), size})) return self->fail_and_close("message longer than the limit");
    self->serve_next();
  });
}

/// False if the peer sends more than it may without ending the message.
bool Session::take(std::string_view bytes) {
  const std::size_t end = bytes.rfind('\0');
  unfinished_bytes_ = end == bytes.npos ? unfinished_bytes_ + bytes.size() : bytes.size() - end - 1;
  const bool too_long = unfinished_bytes_ > (attached_ ? ipc::kMaxMessageBytes : kMaxStrangerBytes);
  return !too_long && splitter_.feed(bytes).has_value();
}

/// Answers the calls that have arrived, one after the other; then reads on.
void Session::serve_next() {
  while (!closed_ && out_.empty() && !streaming_ && !unanswered_) {
    const auto message = splitter_.next();
    if (!message) break;
    auto call = ipc::decode_call(*message);
    if (call) {
      serve(*call);
    } else {
      ipc::Reply reply{{{"parameter", call.error().message}}, false, std::string(ipc::kInvalidParameter)};
      answer({}, {std::move(reply), {}, {}});
    }
  }
  if (!closed_ && out_.empty() && !splitter_.has_complete()) read();
}

void Session::serve(const ipc::Call& call) {
  Answer result = server_.handler_.call(*this, call);
  if (closed_) return;
  if (result.later)
    unanswered_ = call;
  else
    answer(call, std::move(result));
}

void Session::finish(Answer late) {
  if (closed_ || !unanswered_) return;
  const ipc::Call call = *std::exchange(unanswered_, std::nullopt);
  const auto self = shared_from_this();
  answer(call, std::move(late));
  serve_next();
}

void Session::answer(const ipc::Call& call, Answer answer) {
  if (call.oneway) return;
  if (call.more && answer.again && answer.reply.error.empty()) {
    answer.reply.continues = true;
    if (!streaming_) streaming_ = call;
    interval_ = *answer.again;
  } else {
    streaming_.reset();
  }
  out_ = ipc::encode(answer.reply);
  out_sent_ = 0;
  out_fds_ = std::move(answer.fds);
  send();
}

/// Sends as much as the socket takes and waits for it to take the rest. Descriptors go with the first byte.
void Session::send() {
  while (!closed_ && out_sent_ < out_.size()) {
    iovec data{out_.data() + out_sent_, out_.size() - out_sent_};
    msghdr message{};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * kMaxFdsPerReply)> control{};
    if (out_sent_ == 0 && !out_fds_.empty() && out_fds_.size() <= kMaxFdsPerReply) {
      message.msg_control = control.data();
      message.msg_controllen = CMSG_SPACE(sizeof(int) * out_fds_.size());
      cmsghdr* header = CMSG_FIRSTHDR(&message);
      header->cmsg_level = SOL_SOCKET;
      header->cmsg_type = SCM_RIGHTS;
      header->cmsg_len = CMSG_LEN(sizeof(int) * out_fds_.size());
      std::array<int, kMaxFdsPerReply> fds{};
      for (std::size_t i = 0; i < out_fds_.size(); ++i) fds[i] = out_fds_[i].get();
      std::memcpy(CMSG_DATA(header), fds.data(), sizeof(int) * out_fds_.size());
    }
    const ssize_t n = ::sendmsg(socket_.native_handle(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n >= 0) {
      out_sent_ += static_cast<std::size_t>(n);
    } else if (errno == EAGAIN) {
      return socket_.async_wait(Socket::wait_write, [self = shared_from_this()](error_code error) {
        if (self->closed_) return;
        if (error) return self->close();
        self->send();
        self->serve_next();
      });
    } else if (errno != EINTR) {
      return close();
    }
  }
  if (!closed_) sent();
}

void Session::sent() {
  out_.clear();
  out_fds_.clear();
  if (closing_) return close();
  if (!streaming_) return;
  timer_.expires_after(interval_);
  timer_.async_wait([self = shared_from_this()](error_code error) {
    if (error || self->closed_ || !self->streaming_) return;
    self->serve(ipc::Call(*self->streaming_));
    self->serve_next();
  });
  if (!splitter_.has_complete()) read();  // to notice when the peer is gone
}

void Session::fail_and_close(std::string_view parameter) {
  closing_ = true;
  if (!out_.empty()) return;  // a reply is on its way; the connection ends after it
  answer({}, {ipc::Reply{{{"parameter", parameter}}, false, std::string(ipc::kInvalidParameter)}, {}, {}});
}

VarlinkServer::VarlinkServer(asio::io_context& context, int listener, Handler handler)
    : context_(context),
      acceptor_(context, asio::local::stream_protocol(), listener),
      retry_(context),
      handler_(std::move(handler)) {
  accept();
}

void VarlinkServer::stop() {
  stopped_ = true;
  error_code ignored;
  acceptor_.close(ignored);
  retry_.cancel();
  while (!sessions_.empty()) {
    const auto session = *sessions_.begin();
    session->close();
  }
}

void VarlinkServer::accept() {
  if (accepting_ || stopped_ || sessions_.size() >= kMaxConnections) return;
  accepting_ = true;
  acceptor_.async_accept([this](error_code error, Session::Socket socket) {
    if (error == asio::error::operation_aborted || stopped_) return;
    accepting_ = false;
    if (!error) {
      const auto session = std::make_shared<Session>(std::move(socket), *this);
      if (welcome(*session)) {
        sessions_.insert(session);
        session->start();
      }
      return accept();
    }
    retry_.expires_after(kAcceptAgain);
    retry_.async_wait([this](error_code cancelled) {
      if (!cancelled) accept();
    });
  });
}

bool VarlinkServer::welcome(const Session& session) const {
  const std::uint32_t uid = session.peer().uid;
  return uid == 0 || static_cast<std::size_t>(std::count_if(sessions_.begin(), sessions_.end(), [&](const auto& other) {
                       return other->peer().uid == uid;
                     })) < kMaxConnectionsPerUser;
}

void VarlinkServer::forget(Session& session) {
  sessions_.erase(session.shared_from_this());
  accept();
}

}  // namespace gpuctl::daemon
