#include "gpuctld/restart/returning.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "gpuctld/clock.h"
#include "gpuctld/protocol/when_ended.h"

namespace gpuctl::daemon {

using boost::asio::posix::stream_descriptor;
using boost::system::error_code;

Returning::Returning(boost::asio::io_context& context, Scheduler& scheduler, Log log, std::function<void()> freed)
    : context_(context), scheduler_(scheduler), log_(std::move(log)), freed_(std::move(freed)), timer_(context) {}

void Returning::expect(const Holdings& holdings, std::uint64_t now_ns) {
  for (const LastWork& work : holdings.worked)
    for (std::size_t device = 0; device < scheduler_.devices().size(); ++device)
      if (same_uuid(scheduler_.devices()[device].uuid, work.device) && work.last_ns <= now_ns)
        scheduler_.saw_work(work.slice, device, work.last_ns);
  for (const Holding& holding : holdings.attached) expect(holding, now_ns);
  if (waiting_.empty()) return;
  timer_.expires_after(kGrace);
  timer_.async_wait([this](error_code error) {
    if (!error) give_up();
  });
}

void Returning::expect(const Holding& holding, std::uint64_t now_ns) {
  const auto& gpus = scheduler_.devices();
  const auto gpu = std::ranges::find_if(gpus, [&](const Gpu& g) { return same_uuid(g.uuid, holding.device); });
  if (gpu == gpus.end() || holding.promise == Promise{}) return;
  ipc::UniqueFd pidfd = pidfd_of(holding.process);
  if (!pidfd) return;
  const std::string slice = scheduler_.tree().find(holding.slice) == nullptr ? "/" : holding.slice;
  auto client = Client::create({holding.process.pid, holding.process.uid, {}, holding.process.start}, slice,
                               {static_cast<int>(gpu - gpus.begin())});
  if (!client)
    return log_("what process " + std::to_string(holding.process.pid) +
                " holds cannot be kept for it: " + client.error().message);
  client->stands_in = true;
  const Promise promise{std::min(holding.promise.sms, gpu->sms), holding.promise.memory};
  client->inherit(0, promise, promise.sms, now_ns, UINT64_MAX);  // it is removed in time
  Client& added = scheduler_.add(std::move(*client), now_ns);
  const auto entry = std::make_shared<Entry>(added, stream_descriptor(context_, pidfd.release()));
  waiting_.push_back(entry);
  when_ended(entry->exit, std::weak_ptr(entry), [this](const auto& ended) {
    waiting_.remove(ended);
    scheduler_.remove(ended->client, daemon::now_ns());
    freed_();
  });
}

/// What is recorded of a program is the most that it had in the time before. That of all together can be more than the
/// device has, so none may have it all just because it is recorded.
std::uint32_t Returning::left_by_others(int device, const std::vector<Client*>& stand_ins) const {
  std::uint32_t left = scheduler_.devices()[static_cast<std::size_t>(device)].sms;
  for (const Client& other : scheduler_.clients()) {
    if (std::ranges::find(stand_ins, &other) != stand_ins.end()) continue;
    for (const Client::Slot& slot : other.slots())
      if (slot.device == device) left -= std::min(left, other.stands_in ? slot.inherited : slot.counts());
  }
  return left;
}

Client& Returning::attach(Client client, bool time_sliced, std::uint64_t now_ns) {
  std::vector<Client*> stand_ins;
  for (const auto& entry : waiting_)
    if (entry->client.identity().process() == client.identity().process()) stand_ins.push_back(&entry->client);
  for (std::size_t slot = 0; slot < client.slots().size(); ++slot) {
    Promise held;
    const int device = client.slots()[slot].device;
    for (Client* stand_in : stand_ins) {
      if (device < 0 || stand_in->slots()[0].device != device) continue;
      const std::uint32_t sms = scheduler_.devices()[static_cast<std::size_t>(device)].sms;
      held.sms = std::min(held.sms + stand_in->slots()[0].inherited, sms);
      held.memory += stand_in->slots()[0].inherited_memory;
    }
    if (held != Promise{})
      client.inherit(slot, held, std::min(held.sms, left_by_others(device, stand_ins)), now_ns,
                     now_ns + static_cast<std::uint64_t>(std::chrono::nanoseconds(kGrace).count()));
  }
  std::erase_if(waiting_,
                [&](const auto& entry) { return std::ranges::find(stand_ins, &entry->client) != stand_ins.end(); });
  return scheduler_.replace(stand_ins, std::move(client), time_sliced, now_ns);
}

void Returning::stop() {
  timer_.cancel();
  waiting_.clear();
}

void Returning::give_up() {
  std::set<std::int32_t> pids;
  for (const auto& entry : waiting_) pids.insert(entry->client.identity().pid);
  for (const std::int32_t pid : pids)
    log_("process " + std::to_string(pid) + " was attached to the daemon before and has not come back within " +
         std::to_string(kGrace.count()) + " s: what it held is free");
  for (const auto& entry : std::exchange(waiting_, {})) scheduler_.remove(entry->client, now_ns());
  if (!pids.empty()) freed_();
}

}  // namespace gpuctl::daemon
