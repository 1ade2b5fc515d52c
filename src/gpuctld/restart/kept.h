// All that outlives the daemon: the slices, what was learnt about kernels and about isolation, and what attached
// programs may be using.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "gpuctld/restart/holdings_record.h"
#include "gpuctld/restart/learnt_file.h"
#include "gpuctld/restart/returning.h"
#include "gpuctld/restart/state_keeper.h"
#include "gpuctld/scheduler/scheduler.h"

namespace gpuctl::daemon {

/// Paths; "": nothing is kept.
struct KeptFiles {
  std::string state;      ///< slices
  std::string kernels;    ///< what was learnt about kernels
  std::string isolation;  ///< what programs took, shared and isolated
  std::string attached;   ///< what attached programs may be using
};

/// Everything is called on the thread that runs the io_context.
class Kept {
 public:
  using Log = std::function<void(const std::string&)>;
  /// Slices as the configuration last had them (config/state.h).
  using Configured = std::map<std::string, std::string>;

  /// `scheduler` outlives this object. `freed`: SMs that were kept for a program of an earlier daemon are free.
  Kept(boost::asio::io_context& context, Scheduler& scheduler, const KeptFiles& files, Configured configured, Log log,
       std::function<void()> freed);

  /// Writes the slices, reads what was learnt about kernels, and expects the programs of the daemon before: what they
  /// may still be using counts.
  void begin(std::uint64_t now_ns);

  const Configured& configured() const { return configured_; }
  void set_configured(Configured configured) { configured_ = std::move(configured); }

  /// The slices changed.
  void save_slices();
  /// Why the slices would not survive a restart now; null: they would.
  const std::string* problem() const { return state_.problem(); }
  /// A line for each thing that cannot be kept.
  std::vector<std::string> problems() const;

  /// Adds the client to the scheduler (Returning::attach).
  Client& attach(Client client, bool time_sliced, std::uint64_t now_ns);
  /// Programs go on in another slice, after the next daemon has come too.
  void note_moved(std::vector<MovedProgram> programs, std::uint64_t now_ns);
  void forget_moved(const ProcessIdentity& process, std::uint64_t now_ns);
  void keep_moved(const std::function<bool(const std::string& slice)>& exists) { moved_.keep(exists); }
  /// Null: the program was not moved.
  const MovedProgram* moved(const ProcessIdentity& process) const { return moved_.of(process); }
  /// A client is gone. `last`: no other is attached.
  void note_gone(bool last, std::uint64_t now_ns);

  /// Writes what has changed, where that is due.
  void tick(std::uint64_t now_ns);

  /// Writes a last time what is not written yet.
  void stop(std::uint64_t now_ns);

 private:
  Scheduler& scheduler_;
  const std::string attached_file_;
  Log log_;
  Configured configured_;
  StateKeeper state_;
  LearntFile kernels_, isolation_;
  Moved moved_;
  HoldingsRecord holdings_;
  Returning returning_;
};

}  // namespace gpuctl::daemon
