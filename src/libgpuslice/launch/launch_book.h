// The books of one context: its launch blocks, its streams with outstanding launches, and the launches that are
// complete but have workers left.
//
// Locks. A thread holds `Stream::issue` while it launches, so that the book lists launches in the stream's order. The
// book's mutex guards the book. No thread holds it over a driver call: a driver call may block until the GPU makes
// progress, and that progress may need the agent. Lock order: issue, then the mutex. The agent takes only the mutex.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "libgpuslice/base/stream_key.h"
#include "libgpuslice/launch/outstanding.h"
#include "libgpuslice/launch/slots.h"

namespace gpuslice {

/// The caller holds mutex(), except where said.
class LaunchBook {
 public:
  explicit LaunchBook(Slots slots) : slots_(std::move(slots)) {}

  /// Guards the book and whatever else says so.
  std::mutex& mutex() { return mutex_; }

  Slots& slots() { return slots_; }
  const Slots& slots() const { return slots_; }
  /// Needs no mutex.
  gpuctl::ptx::HostSlot& host(const Launch& launch) const { return slots_.host(launch.slot); }

  Stream& stream_of(CUstream handle);
  /// The program destroys the stream. Its outstanding launches still complete.
  void stream_destroyed(CUstream handle);

  /// A launch block for a launch into the stream. Nothing while launches are stopped, while too many wait in the
  /// stream, or while all launch blocks are in use.
  std::optional<std::uint32_t> take_slot(const Stream& stream);
  std::optional<std::vector<std::uint32_t>> take_slots(const Stream& stream, std::size_t count);

  /// Lists the launch behind the others of its stream, and gives it its number.
  void add(Stream& stream, std::unique_ptr<Launch> owned);
  /// A number that no launch of this context has.
  std::uint64_t next_number() { return ++launches_; }
  std::uint64_t next_graph() { return ++graph_launches_; }

  /// stop() and resume() come in pairs. Between them nothing gets a launch block.
  void stop() { ++stops_; }
  void resume() {
    --stops_;
    ++resumes_;
  }

  /// How far launches have got, for threads that wait for them.
  struct Progress {
    std::uint64_t mark = 0;  ///< another one whenever they get on, and never 0
    bool runs = false;       ///< one of them is on the GPU
  };
  Progress progress() const;
  Progress progress_of(const Stream& stream) const;

  /// Streams with outstanding launches.
  const std::vector<Stream*>& active() const { return active_; }
  /// May be read without the mutex.
  std::uint32_t outstanding() const { return outstanding_; }
  /// Whether complete launches have workers that may not have left yet.
  bool any_leaving() const { return !leaving_.empty(); }
  /// The launch with the lowest number; null: none is outstanding.
  const Launch* oldest() const;
  /// Calls visit(launch, stream) for each launch that may be running.
  template <class Visit>
  void visit_heads(Visit visit) const {
    for (const Stream* stream : active_) stream->visit_heads([&](Launch& head) { visit(head, *stream); });
  }

  /// Holders that rest work though nothing may be granted to them: no other workers will come.
  void let_holders_work() const;

  /// Takes out the launches that are complete or that the driver refused. Calls over(launch) for each before. Returns
  /// whether there were any.
  template <class Over>
  bool take_out(std::uint64_t now_ns, Over over) {
    bool any = false;
    for (Stream* stream : active_) {
      while (!stream->outstanding.empty() && is_over(*stream->outstanding.front())) {
        over(*stream->outstanding.front());
        take_oldest(*stream, now_ns);
        any = true;
      }
    }
    if (any) drop_empty_streams();
    return any;
  }
  /// Gives back the launch blocks of complete launches whose workers have left. `none_runs`: none of the agent's grids
  /// runs.
  void give_back_left(bool none_runs, std::uint64_t now_ns);

 private:
  bool is_over(const Launch& launch) const;
  void take_oldest(Stream& stream, std::uint64_t now_ns);
  void drop_empty_streams();

  std::mutex mutex_;
  Slots slots_;
  std::map<StreamKey, std::unique_ptr<Stream>> streams_;
  std::vector<std::unique_ptr<Stream>> orphans_;  ///< streams that the program destroyed with launches outstanding
  std::vector<std::unique_ptr<Launch>> leaving_;  ///< complete, but some workers may not have left yet
  std::vector<Stream*> active_;
  std::atomic<std::uint32_t> outstanding_ = 0;
  std::uint64_t launches_ = 0;  ///< persistent launches so far
  std::uint64_t graph_launches_ = 0;
  int stops_ = 0;
  std::uint64_t resumes_ = 0;
};

}  // namespace gpuslice
