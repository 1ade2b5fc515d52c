#include "gpuctld/ends/end_client.h"

#include <strings.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <cstring>

#include "base/one_line.h"
#include "gpuctld/protocol/when_ended.h"

namespace gpuctl::daemon {

namespace asio = boost::asio;
using boost::system::error_code;
using std::chrono::steady_clock;

namespace {

struct Name {
  const char* name;
  int signal;
};
constexpr std::array<Name, 8> kSignals{{{"TERM", SIGTERM},
                                        {"HUP", SIGHUP},
                                        {"INT", SIGINT},
                                        {"QUIT", SIGQUIT},
                                        {"ABRT", SIGABRT},
                                        {"USR1", SIGUSR1},
                                        {"USR2", SIGUSR2},
                                        {"KILL", SIGKILL}}};

}  // namespace

EndStep next_step(const EndOrder& order, const EndProgress& progress) {
  using Mps = EndProgress::Mps;
  if (progress.ended || progress.refused) return EndStep::finish;
  if (progress.mps == Mps::to_ask) return EndStep::ask_mps;
  if (progress.mps == Mps::asked) return EndStep::wait;
  if (progress.sent == 0) return EndStep::send_signal;
  if (progress.since < patience(order, progress.sent)) return EndStep::wait;
  return progress.sent == SIGKILL ? EndStep::finish : EndStep::send_kill;
}

std::chrono::milliseconds patience(const EndOrder& order, int sent) {
  return sent == SIGKILL ? kKilledWithin : order.timeout;
}

std::string signal_name(int signal) {
  for (const Name& known : kSignals)
    if (known.signal == signal) return std::string("SIG") + known.name;
  return "signal " + std::to_string(signal);
}

std::optional<int> ending_signal(std::string_view name) {
  std::string text(name);
  if (::strncasecmp(text.c_str(), "SIG", 3) == 0) text.erase(0, 3);
  for (const Name& known : kSignals)
    if (::strcasecmp(text.c_str(), known.name) == 0) return known.signal;
  return std::nullopt;
}

std::shared_ptr<Ending> Ending::create(asio::io_context& context, ipc::UniqueFd pidfd, ipc::EndedClient who,
                                       EndOrder order, Check check, Log log, Done done) {
  std::shared_ptr<Ending> ending(
      new Ending(context, std::move(who), order, std::move(check), std::move(log), std::move(done)));
  ending->exit_.assign(pidfd.release());
  return ending;
}

void Ending::start(bool mps_active) {
  progress_.mps = mps_active ? EndProgress::Mps::to_ask : EndProgress::Mps::not_active;
  result_.mps = mps_active ? "not answered" : "not active";
  when_ended(exit_, shared_from_this(), [this](const auto&) {
    if (!done_) return;
    progress_.ended = true;
    step();
  });
  asio::post(exit_.get_executor(), [self = shared_from_this()] { self->step(); });
}

void Ending::mps_answered(const MpsControl::Outcome& outcome) {
  if (!done_) return;
  progress_.mps = EndProgress::Mps::answered;
  switch (outcome.what) {
    case MpsControl::Outcome::terminated:
      result_.mps = "terminated";
      break;
    case MpsControl::Outcome::not_listed:
      result_.mps = "not listed";
      break;
    case MpsControl::Outcome::failed:
      result_.mps = one_line(outcome.reason);
      log_(who() + ": its work on the GPU was not terminated (" + result_.mps + "); going on with " +
           signal_name(order_.signal));
      break;
  }
  step();
}

void Ending::again(EndOrder order) {
  if (!done_) return;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(sent_at_ + order_.timeout - steady_clock::now());
  const bool began = progress_.sent != 0;
  order_ = {order.signal, began ? std::min(order.timeout, std::max(left, std::chrono::milliseconds(0)))
                                : std::min(order.timeout, order_.timeout)};
  if (began && progress_.sent != SIGKILL)
    asio::post(exit_.get_executor(), [self = shared_from_this(), signal = order.signal] {
      if (self->done_ && self->progress_.sent != SIGKILL) self->send(signal);
    });
}

void Ending::cancel() {
  done_ = nullptr;
  error_code ignored;
  exit_.close(ignored);
  timer_.cancel();
}

std::string Ending::who() const {
  const std::string in = result_.slice.empty() ? "" : ", slice " + result_.slice;
  return "process " + std::to_string(result_.pid) + " (" + result_.command + in + ")";
}

void Ending::step() {
  if (!done_) return;
  progress_.since = steady_clock::now() - sent_at_;
  switch (next_step(order_, progress_)) {
    case EndStep::ask_mps:  // by the caller of start(), for all that end together
      progress_.mps = EndProgress::Mps::asked;
      break;
    case EndStep::send_signal:
      send(order_.signal);
      break;
    case EndStep::send_kill:
      log_(who() + " is still there " + std::to_string(order_.timeout.count()) + " ms after " +
           signal_name(order_.signal) + ": it is killed");
      send(SIGKILL);
      break;
    case EndStep::wait:
      break;
    case EndStep::finish:
      finish();
      break;
  }
}

void Ending::send(int signal) {
  progress_.sent = signal;
  sent_at_ = steady_clock::now();
  const MaySignal may = check_();
  if (may == MaySignal::no) {
    log_(who() + " is not sent " + signal_name(signal) + ": it now runs as another user");
    progress_.refused = true;
    return finish();
  }
  // If the process has ended, exit_ sees that.
  if (may == MaySignal::gone) {
  } else if (::syscall(SYS_pidfd_send_signal, exit_.native_handle(), signal, nullptr, 0) == 0) {
    result_.signals.push_back(signal_name(signal));
    if (signal == SIGKILL && killed_) killed_();
  } else if (errno != ESRCH) {
    log_(who() + " cannot be sent " + signal_name(signal) + ": " + std::strerror(errno));
    progress_.refused = true;
    return finish();
  }
  timer_.expires_after(patience(order_, signal));
  timer_.async_wait([self = shared_from_this()](error_code error) {
    if (!error) self->step();
  });
}

void Ending::finish() {
  result_.ended = progress_.ended;
  if (!result_.ended && !progress_.refused)
    log_(who() + " is still there " + std::to_string(kKilledWithin.count()) + " ms after SIGKILL");
  const Done done = std::exchange(done_, nullptr);
  cancel();
  done(result_);
}

}  // namespace gpuctl::daemon
