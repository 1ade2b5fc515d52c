// This process as a client of gpuctld: one connection, one stub page at a time, one thread that keeps both.
//
// The daemon may die and come back at any moment, and the program must not notice. So the last stub page stays mapped
// and its grant stays in force until a new connection brings a new page. Only start(), attach(), set_hint(),
// ask_memory() and report_last_kernels() wait for the daemon; other calls do not block.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/visible_devices.h"
#include "ipc/connection.h"
#include "ipc/stub_map.h"
#include "ipc/types.h"
#include "libgpuslice/base/launch_words.h"
#include "libgpuslice/client/attachment.h"
#include "libgpuslice/client/reconnect.h"

namespace gpuslice {

/// It has many members: the state of one connection, under one mutex, and words beside it that other threads read
/// without the mutex.
class Client {
 public:
  /// The instance of this process; never destroyed.
  static Client& get();

  /// Whether kernels of this process are to be rewritten: GPUCTL_SOCKET or GPUCTL_SLICE is set, this is a container
  /// with the device of a slice, or attach() was called.
  bool wanted() const { return wanted_.load(std::memory_order_relaxed); }

  /// With what a program starts under MPS that starts now in the slice (GetMpsPercentage).
  struct MpsStart {
    std::optional<unsigned> hundredths;         ///< the percentage of the SMs to which MPS is to keep it; none: to none
    std::optional<unsigned> queues;             ///< how many hardware queues it may have; none: there is no MPS
    bool isolated = false;                      ///< it is to share no context with programs of other slices
    std::optional<std::string> pipe_directory;  ///< of the MPS that it is to join; none: where it would by itself look
    std::optional<std::vector<gpuctl::SliceGpu>> gpus;  ///< that it is to see; none: all
    bool refused = false;                               ///< it is in no slice and is to be in one
  };
  /// Asks the daemon; without an answer all is none. Before start(). Waits for kLongestAnswer at most. `own_queues`:
  /// for how many the program asks by itself; 0: for none. The queues are the program's until it is no client any more,
  /// or until keep_no_promise().
  MpsStart ask_for_mps(unsigned own_queues);
  /// Who has asked calls this after start(), or where the program does not become a client.
  void keep_no_promise();
  static constexpr std::chrono::milliseconds kLongestAnswer{200};

  /// Before start(): the program shares no context with programs of other slices, as the daemon wanted.
  void set_isolated();
  /// Before start(): where the program looked for MPS, if the daemon had one for it.
  void set_pipe_directory(std::string directory);

  /// Called once the driver is initialised, with the uuids of the devices the program sees, in its order. `mps_sms`: on
  /// how many SMs of each MPS keeps it; empty: MPS was not asked to. Tries to attach at once (so that the first launch
  /// already knows its grant), and starts the thread that keeps the connection. If the system gives no thread, or the
  /// program has no descriptors left, this process is no client, and wanted() is false from then on.
  void start(std::vector<std::string> device_uuids, std::vector<int> mps_sms = {});

  /// start() cannot be called for want of memory: this process is no client.
  void give_up() { wanted_ = false; }

  /// Attaches to `slice`, or moves there. Any thread; waits for the daemon. Before start() it only notes the slice, to
  /// which start() then attaches.
  gpuctl::Result<void> attach(const std::string& slice);

  /// Whether the daemon refused the program when it started, as it is in no slice and is to be in one. Who runs already
  /// when a daemon comes is not refused: it goes on as without one.
  bool turned_away() const { return turned_away_; }

  std::string slice() const;

  /// The stub page in force; null if there never was one. Pages are never unmapped, so the pointer stays valid.
  gpuctl::ipc::Stub* stub() const { return g_launch_words.page.load(std::memory_order_acquire); }

  /// The grant in force on a device of the program. Null without a daemon, or for a device number that is out of range.
  const gpuctl::ipc::Grant* grant(int device) const;

  /// Makes the daemon look at this client's usage at once (eventfd), for example because demand rose above the grant or
  /// a shrink has taken effect. Does nothing while not attached.
  void kick() const;

  /// The client's thread calls `source` every `kReportInterval`, and with `all` after attaching again. It returns
  /// kernels not yet reported.
  using KernelSource = std::vector<gpuctl::ipc::Kernel> (*)(bool all);
  void set_kernel_source(KernelSource source) { kernel_source_.store(source); }

  /// Tells the daemon of the kernels that `source` returns, without waiting for an answer. When the process exits this
  /// is done once more, so that the daemon knows the kernels of short programs too: report_last_kernels() waits until
  /// the daemon has read them, for kLongestLastReport at most, since it reads nothing of a process that has ended.
  void report_kernels(bool all);
  void report_last_kernels();
  /// The process is about to end: says so in the stub page and closes the connection, also where a forked child has the
  /// descriptor too. This process is no client afterwards. Does not wait; safe in a signal handler.
  void leave() { leave(Stay::kLeft); }
  /// The same where it is about to become another program; come_back() undoes it, and waits for the daemon. Both are
  /// safe in a signal handler.
  void step_out() { leave(Stay::kOut); }
  void come_back();
  static constexpr std::chrono::milliseconds kLongestLastReport{15};

  /// The client's thread calls `tick`, with or without a daemon. It returns the time until the next call.
  using Tick = std::chrono::milliseconds (*)();
  void set_tick(Tick tick) { tick_.store(tick); }

  gpuctl::Result<void> set_hint(int priority);

  /// The daemon's answer to a request to hold this many bytes of a device's memory (HoldMemory of io.gpuctl).
  struct MemoryAnswer {
    bool granted = true;
    std::optional<std::uint64_t> total, free;
    std::chrono::microseconds wait{};  ///< how long the allocation is to wait, at most kLongestWait
  };
  static constexpr std::chrono::milliseconds kLongestWait{100};
  /// Waits for the daemon. Returns an error if there is none.
  gpuctl::Result<MemoryAnswer> ask_memory(int device, std::uint64_t bytes);
  /// Tells the daemon what is held, without waiting for an answer.
  void tell_memory(int device, std::uint64_t bytes);

  /// Tells the daemon that an error broke the context on a device for good, without waiting for an answer.
  void report_fault(int device, int error, const std::string& name);

  /// A launch of a kernel does not end where it was confined.
  struct Stuck {
    std::string kernel;
    std::uint32_t sms;
    std::uint64_t ms;  ///< since it was launched
  };
  /// Tells the daemon, without waiting for an answer.
  void report_stuck(const Stuck& stuck);

  Targets targets() const;

  /// Called in a forked child. Forgets connection and thread, which belong to the parent.
  void forget_after_fork();

 private:
  Client();
  struct Watch;
  struct Asked {
    Asked(gpuctl::ipc::Connection opened, int by) : connection(std::move(opened)), pid(by) {}
    gpuctl::ipc::Connection connection;
    int pid;  ///< of the process that asked
  };
  std::optional<gpuctl::ipc::Connection> take_asked_locked();
  /// `refused`: set to whether a daemon answered, one that has GPUs. Without a connection the answer was no.
  gpuctl::Result<void> connect_locked(bool resumed, bool* refused = nullptr);
  void introduce();
  void take_locked(Attachment attachment, gpuctl::ipc::Connection connection);
  void run();
  void look(Watch& watch);
  void say(const gpuctl::Error& why);
  std::optional<gpuctl::ipc::Call> kernels_to_report(bool all);
  bool wait_for_end(std::chrono::milliseconds at_most);
  void try_to_attach(Watch& watch, const Reconnect::Socket& socket);
  Reconnect::Why why(bool refused) const;
  /// Whether this process is a client, or has a daemon to look for.
  enum class Stay { kHere, kOut, kLeft };
  void leave(Stay stay);
  bool left() const { return stay_.load() == Stay::kLeft; }

  std::atomic<bool> wanted_{false};
  std::atomic<Stay> stay_{Stay::kHere};
  std::atomic<bool> turned_away_{false};
  std::atomic<bool> comes_back_{false};  ///< the thread is to attach at once
  std::atomic<int> kick_fd_{-1};
  std::atomic<KernelSource> kernel_source_{nullptr};
  std::atomic<Tick> tick_{nullptr};
  std::mutex reporting_;      ///< held from taking kernels until they are sent; locked before mutex_
  mutable std::mutex mutex_;  ///< guards what follows
  std::string socket_;
  Introduction introduction_;
  std::optional<Asked> asked_;               ///< that of ask_for_mps(), to which queues are promised: for start()
  std::vector<gpuctl::ipc::StubMap> stubs_;  ///< all pages that ever were in force, since GPUs may still poll old ones
  std::unique_ptr<gpuctl::ipc::Connection> connection_;
  Targets targets_;
  bool started_ = false;
  bool tried_ = false;  ///< to attach
  std::string said_;    ///< why the latest try to attach failed
};

}  // namespace gpuslice
