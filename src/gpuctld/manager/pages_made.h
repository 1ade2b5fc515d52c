// Stub pages that were made for a connection and are not attached with yet. Who gets one takes it (ipc::StubMap::take);
// before that, whoever touches the page or unmaps it waits for holes that are punched into it, and where it is mapped
// very often that is long. So the daemon does neither until it is taken, and gives it up soon: in that time nobody maps
// it very often.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "ipc/stub_map.h"

namespace gpuctl::daemon {

class Session;

/// Everything is called on the thread that runs the io_context.
class PagesMade {
 public:
  /// From the answer to the next call.
  static constexpr std::chrono::milliseconds kSoon{100};

  explicit PagesMade(boost::asio::io_context& context) : context_(context) {}

  void keep(const Session& session, ipc::NewStub page) {
    const auto made = std::make_shared<Made>(context_, std::move(page));
    made_[&session] = made;
    made->soon.expires_after(kSoon);
    made->soon.async_wait([weak = std::weak_ptr(made)](boost::system::error_code error) {
      if (const auto late = weak.lock(); late && !error) late->page.reset();
    });
  }
  bool any_for(const Session& session) const { return made_.contains(&session); }
  /// None: it was given up, or is not as a client leaves it that has taken it.
  std::optional<ipc::NewStub> take(const Session& session) {
    const auto found = made_.extract(&session);
    if (found.empty()) return std::nullopt;
    std::optional<ipc::NewStub> page = std::exchange(found.mapped()->page, std::nullopt);
    if (page && !(page->is_sealed() && page->stays())) page.reset();
    return page;
  }
  void forget(const Session& session) { made_.erase(&session); }

 private:
  struct Made {
    Made(boost::asio::io_context& context, ipc::NewStub page) : page(std::move(page)), soon(context) {}
    std::optional<ipc::NewStub> page;
    boost::asio::steady_timer soon;
  };

  boost::asio::io_context& context_;
  std::map<const Session*, std::shared_ptr<Made>> made_;
};

}  // namespace gpuctl::daemon
