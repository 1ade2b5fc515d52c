#include "gpuctld/protocol/varlink_server.h"

#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <utility>
#include <vector>

#include "gpuctld/clock.h"
#include "gpuctld/protocol/timed.h"

namespace gpuctl::daemon {

namespace asio = boost::asio;
using boost::system::error_code;

namespace {
/// When accepting fails for lack of descriptors or memory, it is tried again after this time.
constexpr std::chrono::milliseconds kAcceptAgain{100};
/// Connections taken, or looked at, in one turn of the loop. To take one, or to close one, costs up to 0.2 ms.
constexpr int kTakenAtOnce = 16;
/// So many wait in the socket's queue, where root's may be the last; further ones wait within connect(2).
constexpr int kQueue = 16;
/// So long nobody is looked at who is in debt, if there is nobody else.
constexpr std::chrono::milliseconds kRest{5};
/// How late a peer that keeps the daemon waiting is found out; and in how many parts all are looked at meanwhile, since
/// thousands may have to be closed.
constexpr std::chrono::milliseconds kCheckPatience{5000};
constexpr int kMostParts = 50;
}  // namespace

VarlinkServer::VarlinkServer(asio::io_context& context, int listener, UserBudgets& budgets, Handler handler)
    : context_(context),
      acceptor_(context, asio::local::stream_protocol(), listener),
      retry_(context),
      patience_(context),
      rest_(context),
      budgets_(budgets),
      let_go_(context,
              [this](std::uint32_t uid, std::chrono::nanoseconds took) {
                budgets_.disconnect(uid);
                budgets_.worked(uid, took, now_ns());
              }),
      refused_(context,
               [this](std::uint32_t uid, std::chrono::nanoseconds took) { budgets_.worked(uid, took, now_ns()); }),
      handler_(std::move(handler)) {
  ::listen(listener, kQueue);  // whoever made it may have asked for more
  accept();
  watch_patience();
}

void VarlinkServer::stop() {
  for (HandedOver& one : hand_over()) {
    ::shutdown(one.socket.get(), SHUT_RDWR);
    one.socket.release();
  }
}

std::vector<HandedOver> VarlinkServer::hand_over() {
  stopped_ = true;
  error_code ignored;
  acceptor_.close(ignored);
  retry_.cancel();
  patience_.cancel();
  rest_.cancel();
  turns_.clear();
  unchecked_.clear();
  std::vector<HandedOver> handed;
  while (!sessions_.empty()) {
    const auto session = *sessions_.begin();
    handed.push_back(session->hand_over());
  }
  return handed;
}

void VarlinkServer::adopt(std::vector<HandedOver> connections) {
  for (HandedOver& connection : connections) {
    bool lacks_room = false;
    if (!connection.socket || sessions_.size() >= kMaxConnections) continue;
    if (const auto session = admit(std::move(connection.socket), Timed::used(), lacks_room))
      session->go_on_from(std::move(connection));
  }
}

std::size_t VarlinkServer::streams() const {
  return static_cast<std::size_t>(std::ranges::count_if(sessions_, [](const auto& s) { return s->streaming(); }));
}

void VarlinkServer::accept() {
  if (accepting_ || stopped_ || sessions_.size() >= kMaxConnections) return;
  if (const auto wait = budgets_.wait_to_connect(now_ns()); wait.count() > 0) return accept_after(wait);
  accepting_ = true;
  acceptor_.async_wait(asio::local::stream_protocol::acceptor::wait_read, [this](error_code error) {
    if (error == asio::error::operation_aborted || stopped_) return;
    accepting_ = false;
    if (error || !accept_some()) return accept_after(kAcceptAgain);
    accept();
  });
}

void VarlinkServer::accept_after(std::chrono::nanoseconds wait) {
  retry_.expires_after(wait);
  retry_.async_wait([this](error_code cancelled) {
    if (!cancelled) accept();
  });
}

/// False: there are no descriptors or no memory.
bool VarlinkServer::accept_some() {
  for (int i = 0; i < kTakenAtOnce && sessions_.size() < kMaxConnections; ++i) {
    const std::uint64_t began = Timed::used();
    ipc::UniqueFd fd(::accept4(acceptor_.native_handle(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd) return errno == EAGAIN || errno == EINTR || errno == ECONNABORTED;
    bool lacks_room = false;
    if (const auto session = admit(std::move(fd), began, lacks_room)) session->start();
    if (lacks_room) return false;
  }
  return true;
}

/// A session on the connection; null if its user may have no more. `lacks_room`: there are no descriptors or no memory.
/// `began`: Timed::used(), before it was taken.
std::shared_ptr<Session> VarlinkServer::admit(ipc::UniqueFd fd, std::uint64_t began, bool& lacks_room) {
  const std::uint32_t uid = uid_of(fd.get());
  const Timed timed(budgets_, uid, began);
  if (!budgets_.connect(uid, now_ns()) && !(make_room_for(uid) && budgets_.connect(uid, now_ns()))) {
    handler_.refused(uid);
    refused_.close(std::move(fd), uid);
    return nullptr;
  }
  // A byte out of band would be dropped unseen, with what was passed along it.
  constexpr int kInline = 1;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_OOBINLINE, &kInline, sizeof kInline);
  error_code error;
  Session::Socket socket(context_);
  socket.assign(asio::local::stream_protocol(), fd.get(), error);
  if (error) {
    budgets_.disconnect(uid);
    lacks_room = true;
    return nullptr;
  }
  (void)fd.release();
  const auto session = std::make_shared<Session>(std::move(socket), *this);
  sessions_.insert(session);
  return session;
}

/// Where all connections are taken, one of the user who has the most is closed, unless a program depends on it.
bool VarlinkServer::make_room_for(std::uint32_t uid) {
  const auto gives = budgets_.gives_up_connection_for(uid);
  if (!gives) return false;
  const auto one = std::ranges::find_if(
      sessions_, [&](const auto& session) { return session->peer().uid == *gives && !session->attached(); });
  if (one == sessions_.end()) return false;
  const std::shared_ptr<Session> closed = *one;
  closed->close();
  return true;
}

void VarlinkServer::take_turn(const std::shared_ptr<Session>& session) {
  const std::uint32_t uid = session->peer().uid;
  if (budgets_.exempt(uid) || session->goes_before()) return asio::post(context_, [session] { session->turn(); });
  turns_.add(uid, session);
  serve(budgets_.wait(uid, now_ns()).count() > 0);
}

void VarlinkServer::serve_next() {
  std::shared_ptr<Session> session;
  const std::uint64_t now = now_ns();
  const auto may = [&](std::uint32_t uid) { return budgets_.wait(uid, now).count() == 0; };
  const bool rests = !turns_.next(may, session);
  if (!rests) session->turn();
  if (!turns_.empty()) serve(rests);
}

/// The next turn: after what else is ready or, where all who wait are in debt, after a while. To wait for a moment
/// costs more than what is done after it.
void VarlinkServer::serve(bool rests) {
  bool& on_its_way = rests ? resting_ : serving_;
  if (on_its_way || serving_ || stopped_) return;
  on_its_way = true;
  if (rests) {
    rest_.expires_after(kRest);
    rest_.async_wait([this](error_code error) {
      resting_ = false;
      if (!error) serve(false);
    });
    return;
  }
  asio::post(context_, [this] {
    serving_ = false;
    if (!stopped_) serve_next();
  });
}

void VarlinkServer::watch_patience() {
  patience_.expires_after(kCheckPatience / parts_);
  patience_.async_wait([this](error_code error) {
    if (error || stopped_) return;
    const std::uint64_t now = now_ns();
    if (unchecked_.empty()) {
      look_at_all();
      part_ = std::max<std::size_t>(kTakenAtOnce, unchecked_.size() / kMostParts + 1);  // no more wake-ups than needed
      parts_ = std::max(1, static_cast<int>((unchecked_.size() + part_ - 1) / part_));
      budgets_.forget_idle(now);
    }
    check_some(now, part_);
    watch_patience();
  });
}

void VarlinkServer::look_at_all() {
  unchecked_.assign(sessions_.begin(), sessions_.end());
}

void VarlinkServer::check_patience(std::uint64_t now_ns) {
  look_at_all();
  check_some(now_ns, unchecked_.size());
}

/// So many of those that are still to be looked at.
void VarlinkServer::check_some(std::uint64_t now_ns, std::size_t many) {
  for (int i = 0; i < kTakenAtOnce && many > 0 && !unchecked_.empty(); ++i, --many) {
    const auto session = unchecked_.back().lock();
    unchecked_.pop_back();
    if (session) session->check_patience(now_ns);
  }
  if (many == 0 || unchecked_.empty()) return;
  asio::post(context_, [this, now_ns, many] {
    if (!stopped_) check_some(now_ns, many);
  });
}

/// `socket`: empty if it is handed over.
void VarlinkServer::forget(Session& session, ipc::UniqueFd socket) {
  turns_.remove(session.peer().uid, session.shared_from_this());
  sessions_.erase(session.shared_from_this());
  if (socket)
    let_go_.close(std::move(socket), session.peer().uid);
  else
    budgets_.disconnect(session.peer().uid);
  accept();
}

}  // namespace gpuctl::daemon
