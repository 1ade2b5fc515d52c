#include "gpuctld/manager/ticker.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <random>
#include <utility>

#include "gpuctld/clock.h"

namespace gpuctl::daemon {

using boost::system::error_code;

Ticker::Ticker(boost::asio::io_context& context, Scheduler& scheduler, Hooks hooks)
    : context_(context),
      scheduler_(scheduler),
      hooks_(std::move(hooks)),
      timer_(context),
      soon_(context),
      storm_timer_(context),
      random_(std::random_device{}()) {}

void Ticker::look(std::uint64_t now_ns) {
  // The processor's time: a daemon that had to wait for a processor has not worked for longer.
  const std::uint64_t began = daemon::now_ns(CLOCK_THREAD_CPUTIME_ID);
  const bool changed = scheduler_.update(now_ns);
  pace_.looked(changed, std::chrono::nanoseconds(daemon::now_ns(CLOCK_THREAD_CPUTIME_ID) - began), now_ns);
}

void Ticker::look_soon() {
  if (asked_ || stopped_) return;
  asked_ = true;
  const auto rest = pace_.rest(now_ns());
  if (rest.count() == 0) return boost::asio::post(context_, [this] { look_now(); });
  soon_.expires_after(rest);
  soon_.async_wait([this](error_code error) {
    if (!error) look_now();
  });
}

void Ticker::look_now() {
  asked_ = false;
  if (stopped_) return;
  look(now_ns());
  hooks_.looked();
}

void Ticker::arm(bool rests) {
  if (stopped_) return;
  const auto wait = std::min<std::chrono::nanoseconds>(pace_.wait(scheduler_.waiting(), scheduler_.busy(), now_ns()),
                                                       rests ? kBusyTick : kIdleTick);
  const auto at_ns = [](std::uint64_t ns) {
    return std::chrono::steady_clock::time_point(std::chrono::nanoseconds(std::min<std::uint64_t>(ns, INT64_MAX)));
  };
  const auto now = std::chrono::steady_clock::now();
  // Users set quotas, with periods as they like.
  const auto of_quotas = std::max(at_ns(scheduler_.quota_ns()), now + pace_.rest(now_ns()));
  const auto at = std::min({now + wait, at_ns(scheduler_.again_ns()), of_quotas});
  if (armed_ && at_ <= at) return;
  armed_ = true;
  at_ = at;
  timer_.expires_at(at);
  timer_.async_wait([this](error_code error) {
    if (error || stopped_) return;
    armed_ = false;
    hooks_.tick();
  });
}

void Ticker::begin_storm(std::chrono::microseconds mean) {
  const double wait = random_.exponential(static_cast<double>(mean.count()));
  const double most = 20.0 * static_cast<double>(mean.count());
  storm_timer_.expires_after(std::chrono::microseconds(static_cast<std::int64_t>(std::min(wait, most))));
  storm_timer_.async_wait([this, mean](error_code error) {
    if (error || stopped_) return;
    scheduler_.storm(random_, now_ns());
    begin_storm(mean);
  });
}

void Ticker::stop() {
  stopped_ = true;
  timer_.cancel();
  soon_.cancel();
  storm_timer_.cancel();
}

}  // namespace gpuctl::daemon
