#include "gpuctld/protocol/varlink_server.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "gpuctld/clock.h"

namespace gpuctl::daemon {

namespace asio = boost::asio;
using boost::system::error_code;

namespace {
/// When accepting fails for lack of descriptors or memory, it is tried again after this time.
constexpr std::chrono::milliseconds kAcceptAgain{100};
/// How late a peer that keeps the daemon waiting is found out.
constexpr std::chrono::seconds kCheckPatience{5};
}  // namespace

VarlinkServer::VarlinkServer(asio::io_context& context, int listener, UserBudgets& budgets, Handler handler)
    : context_(context),
      acceptor_(context, asio::local::stream_protocol(), listener),
      retry_(context),
      patience_(context),
      budgets_(budgets),
      handler_(std::move(handler)) {
  accept();
  watch_patience();
}

void VarlinkServer::stop() {
  stopped_ = true;
  error_code ignored;
  acceptor_.close(ignored);
  retry_.cancel();
  patience_.cancel();
  while (!sessions_.empty()) {
    const auto session = *sessions_.begin();
    session->close();
  }
}

std::size_t VarlinkServer::streams() const {
  return static_cast<std::size_t>(std::ranges::count_if(sessions_, [](const auto& s) { return s->streaming(); }));
}

void VarlinkServer::accept() {
  if (accepting_ || stopped_ || sessions_.size() >= kMaxConnections) return;
  accepting_ = true;
  acceptor_.async_accept([this](error_code error, Session::Socket socket) {
    if (error == asio::error::operation_aborted || stopped_) return;
    accepting_ = false;
    if (!error) {
      const auto session = std::make_shared<Session>(std::move(socket), *this);
      budgets_.charge(session->peer().uid, 1, 0, now_ns());
      if (budgets_.connect(session->peer().uid)) {
        sessions_.insert(session);
        session->start();
      } else {
        handler_.refused(session->peer().uid);
      }
      return accept();
    }
    retry_.expires_after(kAcceptAgain);
    retry_.async_wait([this](error_code cancelled) {
      if (!cancelled) accept();
    });
  });
}

void VarlinkServer::watch_patience() {
  patience_.expires_after(kCheckPatience);
  patience_.async_wait([this](error_code error) {
    if (error || stopped_) return;
    const std::uint64_t now = now_ns();
    check_patience(now);
    budgets_.forget_idle(now);
    watch_patience();
  });
}

void VarlinkServer::check_patience(std::uint64_t now_ns) {
  const std::vector<std::shared_ptr<Session>> all(sessions_.begin(), sessions_.end());
  for (const auto& session : all) session->check_patience(now_ns);
}

void VarlinkServer::forget(Session& session) {
  if (sessions_.erase(session.shared_from_this()) > 0) budgets_.disconnect(session.peer().uid);
  accept();
}

}  // namespace gpuctl::daemon
