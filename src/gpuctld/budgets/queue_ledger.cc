#include "gpuctld/budgets/queue_ledger.h"

#include <algorithm>

namespace gpuctl::daemon {

std::uint32_t QueueLedger::promise(const Program& program, bool needs_more) {
  give_back(program.id);
  const std::uint32_t queues = needs_more && has_more_for(program) ? kMoreQueues : kUsualQueues;
  note(program, queues);
  return queues;
}

void QueueLedger::note(const Program& program, std::uint32_t queues) {
  promises_[program.id] = {program.uid, program.exempt, std::min(queues, kMostQueues)};
}

void QueueLedger::give_back(std::uint64_t id) {
  promises_.erase(id);
}

std::uint32_t QueueLedger::promised() const {
  std::uint32_t sum = 0;
  for (const auto& [id, promise] : promises_) sum += promise.queues;
  return sum;
}

bool QueueLedger::has_more_for(const Program& program) const {
  std::uint32_t of_exempt = 0, of_users = 0;
  std::map<std::uint32_t, std::uint32_t> by_user;
  for (const auto& [id, promise] : promises_) (promise.exempt ? of_exempt : by_user[promise.uid]) += promise.queues;
  for (const auto& [uid, queues] : by_user) of_users += std::min(queues, kQueuesOfUser);
  if (!program.exempt &&
      (by_user[program.uid] + kMoreQueues > kQueuesOfUser || of_users + kMoreQueues > kQueuesOfUsers))
    return false;
  return of_exempt + std::min(of_users, kQueuesOfUsers) + kMoreQueues <= kQueuesPromised;
}

}  // namespace gpuctl::daemon
