// Which MPS the programs of this daemon may be in: somebody's, that serves the machine, and those that the daemon
// starts: one for all slices that are not isolated, where nobody else's is, and one for each topmost isolated slice.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "gpuctld/host/managed_mps.h"
#include "sched/slice_tree.h"

namespace gpuctl::daemon {

/// The one of all slices that are not isolated.
inline constexpr char kSharedMps[] = "shared";

/// As many of its own at most, so that users who isolate many slices do not fill the machine with them. Of these so
/// many for slices below what root has given to one owner, so that some are left for others.
inline constexpr std::size_t kMostMps = 32, kMostMpsOfOwner = 8;

/// Everything is called on the thread that runs the io_context.
class MpsPlaces {
 public:
  struct Settings {
    std::string directory;  ///< below which each of its own has a pipe directory; "": it starts none
    std::string socket;     ///< ManagedMps::Place::socket, and the next two
    std::string start_socket, control_socket;
  };
  MpsPlaces(boost::asio::io_context& context, Settings settings, ManagedMps::Log log);

  /// Whether it starts any.
  void manage(bool on) { manages_ = on && !settings_.directory.empty(); }
  bool manages() const { return manages_; }

  /// What the MPS of a topmost isolated slice is called.
  static std::string name_of(std::string_view slice);
  /// Whether that is the name for the slice or for one above it: programs of other slices have no right to be in it.
  static bool is_for(std::string_view name, std::string_view slice);

  /// Programs of slices that are not isolated have an MPS.
  bool serves() { return ours() || mps_active(); }
  /// And the daemon started it.
  bool ours() { return runs(kSharedMps); }
  bool runs(const std::string& name);
  /// "": it has none of that name.
  std::string directory_of(const std::string& name) const;
  /// The one whose pipe directory that is; "": none of its own.
  std::string name_in(std::string_view directory) const;

  /// ManagedMps::wait() of the one that the program would join. `slice`: of a name that is not kSharedMps; `owner`: to
  /// whom root has given what it is below, none: to nobody.
  bool wait(const std::string& name, const std::string& slice, std::optional<sched::SliceOwner> owner, const void* who,
            std::function<void()> then);
  void forget(const void* who);
  /// The pipe directory that a program of this user is to join now, of one of its own; none: it does not run, or does
  /// not serve this user.
  std::optional<std::string> offered(const std::string& name, std::uint32_t uid);

  /// Which ones programs of slices are in, and whose programs.
  void note_use(const std::map<std::string, std::uint32_t>& users);

  /// The server of which one the process is: kSharedMps also for that of somebody else's MPS. "": of none.
  std::string served_by(std::int32_t pid);

  /// Why that one of its own does not run; "": nothing is wrong.
  std::string trouble(const std::string& name = kSharedMps) const;

  void stop();

 private:
  ManagedMps& place(const std::string& name, const std::string& whose);
  bool has_room_for(const std::string& name, std::optional<sched::SliceOwner> owner);

  boost::asio::io_context& context_;
  Settings settings_;
  ManagedMps::Log log_;
  std::map<std::string, std::unique_ptr<ManagedMps>> places_;
  std::map<std::string, sched::SliceOwner> owners_;  ///< of those that somebody has waited for
  bool manages_ = false;
};

}  // namespace gpuctl::daemon
