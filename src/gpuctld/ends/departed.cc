#include "gpuctld/ends/departed.h"

#include <algorithm>
#include <utility>

#include "gpuctld/protocol/peer.h"
#include "gpuctld/protocol/when_ended.h"

namespace gpuctl::daemon {

using boost::asio::posix::stream_descriptor;

void Departed::keep(Client client, ipc::UniqueFd pidfd) {
  const std::int32_t pid = client.identity().pid;
  if (client.leaving() || (pidfd && process_ends(pidfd.get(), pid))) client.open_grants();
  LeftPage page = client.leave();
  if (!pidfd) return;
  make_room_for(page);
  const auto entry = std::make_shared<Entry>(std::move(page), stream_descriptor(context_, pidfd.release()));
  waiting_.push_back(entry);
  when_ended(entry->exit, std::weak_ptr(entry), [this](const auto& ended) {
    ended->page.open_grants();
    waiting_.remove(ended);
  });
}

void Departed::make_room_for(const LeftPage& page) {
  const auto drop_oldest = [this](std::size_t most, auto is_one) {
    if (static_cast<std::size_t>(std::ranges::count_if(waiting_, is_one)) < most) return;
    const auto oldest = std::ranges::find_if(waiting_, is_one);
    (*oldest)->page.open_grants();  // kernels that read there must not wait for what nobody writes any more
    waiting_.erase(oldest);
  };
  drop_oldest(kMaxDepartedOfProcess, [&](const auto& entry) { return entry->page.pid == page.pid; });
  drop_oldest(kMaxDepartedOfUser, [&](const auto& entry) { return entry->page.uid == page.uid; });
  drop_oldest(kMaxDeparted, [](const auto&) { return true; });
}

}  // namespace gpuctl::daemon
