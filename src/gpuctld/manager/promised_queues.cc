#include "gpuctld/manager/promised_queues.h"

#include <utility>

#include "gpuctld/protocol/peer.h"
#include "gpuctld/protocol/when_ended.h"

namespace gpuctl::daemon {

using boost::asio::posix::stream_descriptor;

QueueLedger::Program PromisedQueues::program(Session& session, bool exempt) {
  const auto [known, is_new] = ids_.try_emplace(&session, next_id_);
  if (is_new) ++next_id_;
  return {.id = known->second, .uid = session.peer().uid, .exempt = exempt};
}

std::uint32_t PromisedQueues::promise(Session& session, bool exempt, bool needs_more) {
  return ledger_.promise(program(session, exempt), needs_more);
}

void PromisedQueues::note(Session& session, bool exempt, std::uint32_t queues) {
  ledger_.note(program(session, exempt), queues);
}

void PromisedQueues::leave(Session& session) {
  const auto found = ids_.find(&session);
  if (found == ids_.end() || stopped_) return;
  const std::uint64_t id = found->second;
  ids_.erase(found);
  ipc::UniqueFd pidfd = peer_pidfd(session.socket(), session.peer());
  if (!pidfd || !process_ends(pidfd.get(), session.peer().pid)) return ledger_.give_back(id);
  give_back_when_ended(id, std::move(pidfd));
}

void PromisedQueues::give_back_when_ended(std::uint64_t id, ipc::UniqueFd pidfd) {
  if (ending_.size() >= kMaxEnding) {
    ledger_.give_back(ending_.front()->id);
    ending_.pop_front();
  }
  const auto entry = std::make_shared<Ending>(id, stream_descriptor(context_, pidfd.release()));
  ending_.push_back(entry);
  when_ended(entry->exit, std::weak_ptr(entry), [this](const auto& ended) {
    ledger_.give_back(ended->id);
    ending_.remove(ended);
  });
}

}  // namespace gpuctl::daemon
