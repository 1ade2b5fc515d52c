// The methods of io.gpuctl about MPS: what a program asks before it is attached, and what a server of MPS does.
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "gpuctld/clock.h"
#include "gpuctld/host/mps.h"
#include "gpuctld/manager/manager.h"
#include "gpuctld/protocol/answers.h"
#include "gpuctld/protocol/timed.h"
#include "ipc/codec.h"

namespace gpuctl::daemon {

/// One percentage holds for all GPUs of a program. So none is given where a GPU is not managed: nothing limits a
/// program there.
Answer Manager::get_mps_percentage(Session& session, ipc::Fields& fields) {
  const std::string asked = fields.text("slice");
  const auto own_queues = fields.maybe_integer("queues", 0, kMostQueues);
  const std::string exe = fields.maybe_text("exe").value_or("");
  fields.refuse_unknown();
  if (!fields.ok()) return invalid(fields);
  // Who asks has an MPS started, and kept for a while.
  const auto found = slice_for(session, asked, exe);
  if (!found) return refuse(refused_start(found.error()));
  const std::string& slice = *found;
  scheduler_.choose_isolation(now_ns());
  const auto answer_later = [this, &session, slice, own_queues] {
    const Timed timed(budgets_, session.peer().uid);
    session.finish(mps_start(session, slice, own_queues));
  };
  const std::string top = sched::topmost_isolated(scheduler_.tree().slices(), slice);
  if (mps_.wait(mps_of(slice), top, scheduler_.tree().given_to(top), &session, answer_later)) {
    Answer answer;
    answer.later = true;
    return answer;
  }
  return mps_start(session, slice, own_queues);
}

/// Whether a program that starts in the slice now is to share no context with those outside of it.
bool Manager::is_isolated(const std::string& slice) const {
  const auto& slices = scheduler_.tree().slices();
  const auto found = slices.find(slice);
  return found != slices.end() &&
         scheduler_.effective()[static_cast<std::size_t>(std::distance(slices.begin(), found))].isolated &&
         std::ranges::none_of(scheduler_.devices(), &Gpu::exclusive);
}

/// Which MPS of the daemon's own a program joins that starts in the slice now.
std::string Manager::mps_of(const std::string& slice) const {
  if (!is_isolated(slice)) return kSharedMps;
  return MpsPlaces::name_of(sched::topmost_isolated(scheduler_.tree().slices(), slice));
}

/// Of the MPS that the program may be in; "": of none.
std::string Manager::pipe_directory_of(const Client& client) {
  if (!client.mps.empty()) return mps_.runs(client.mps) ? mps_.directory_of(client.mps) : "";
  return !client.isolated && !mps_.ours() && mps_active() ? mps_pipe_directory() : "";
}

/// With what a program starts in the slice.
Answer Manager::mps_start(Session& session, const std::string& slice, std::optional<std::int64_t> own_queues) {
  const sched::SliceTree& tree = scheduler_.tree();
  if (const auto may = slice_for(session, slice); !may) return refuse(may.error());  // it may have waited
  const auto index = static_cast<std::size_t>(std::distance(tree.slices().begin(), tree.slices().find(slice)));
  const DaemonOptions& daemon = scheduler_.options();
  const std::optional<std::string> offered = mps_.offered(mps_of(slice), session.peer().uid);
  const bool isolated = is_isolated(slice), joins = offered || (!isolated && !mps_.ours() && mps_active());
  const bool mps = joins || std::ranges::none_of(scheduler_.devices(), &Gpu::needs_mps);
  std::optional<std::uint32_t> hundredths;
  // Kernels that can always be evicted are kept to a limit without MPS, and to another one as soon as it changes.
  const bool some = sched::names_devices(tree.slices(), slice);
  if (!daemon.always_preemptible && mps && (some || !options_.leaves_out_gpus))
    hundredths = scheduler_.mps_hundredths(index);
  const auto or_null = [](const std::optional<std::uint32_t>& value) {
    return value ? boost::json::value(*value) : boost::json::value();
  };
  Answer answer = success({{"hundredths", isolated ? boost::json::value() : or_null(hundredths)}});
  if (isolated) answer.reply.parameters["isolated"] = true, told_isolated_[&session] = slice;
  if (own_queues)
    answer.reply.parameters["queues"] =
        or_null(joins ? promise_queues(session, index, *own_queues, hundredths) : std::nullopt);
  if (offered) answer.reply.parameters["pipe_directory"] = *offered;
  if (some) {
    std::vector<ipc::Device> devices = describe_devices();
    std::erase_if(devices,
                  [&, at = std::size_t{0}](const ipc::Device&) mutable { return !scheduler_.is_seen(index, at++); });
    answer.reply.parameters["devices"] = ipc::to_json(devices);
  }
  return answer;
}

/// How many hardware queues a program may have that starts in the slice; `own`: how many it makes of itself, 0: it asks
/// for no number. It joins an MPS.
std::optional<std::uint32_t> Manager::promise_queues(Session& session, std::size_t slice, std::int64_t own,
                                                     std::optional<std::uint32_t> hundredths) {
  const bool exempt = budgets_.exempt(session.peer().uid);
  const std::string& path = std::next(scheduler_.tree().slices().begin(), static_cast<std::ptrdiff_t>(slice))->first;
  const auto needs_form = [&] {
    if (!is_isolated(path)) return scheduler_.would_need_form(slice, hundredths, false);
    return scheduler_.would_need_form_within(slice, sched::topmost_isolated(scheduler_.tree().slices(), path));
  };
  if (own == 0) return queues_.promise(session, exempt, needs_form());
  queues_.note(session, exempt, static_cast<std::uint32_t>(own));
  return static_cast<std::uint32_t>(own);
}

Answer Manager::serve_mps(Session& session, ipc::Fields& fields) {
  const auto version = fields.integer("stub_version", 0, std::numeric_limits<std::uint32_t>::max());
  fields.refuse_unknown();
  if (!fields.ok()) return invalid(fields);
  const Peer& peer = session.peer();
  const std::string mps = mps_.served_by(peer.pid);
  if (mps.empty()) return refuse_own("PermissionDenied", {{"path", "/"}});
  if (version != ipc::stub_version()) return refuse_version(session, version);
  std::vector<int> devices(std::min<std::size_t>(scheduler_.devices().size(), ipc::kMaxDevices));
  std::iota(devices.begin(), devices.end(), 0);
  auto page = pages_.take(session);
  if (!page) return refuse_own("NoPage", {});
  auto server =
      Client::create({peer.pid, peer.uid, name_of(peer.pid), peer.start}, "/", std::move(devices), std::move(*page));
  if (!server) return invalid("stub_version", server.error().message);
  servers_.add(session, mps, std::move(*server));
  session.trust_as_client();
  log_of(peer.uid, "the MPS server " + std::to_string(peer.pid) + " takes the length of its turns from here");
  arm_tick();
  return success();
}

}  // namespace gpuctl::daemon
