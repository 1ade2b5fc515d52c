// A burst of one device: from the first work that the program puts there with nothing outstanding, to the return of a
// wait after which nothing is outstanding that was put there before the wait.
//
// In original form only the driver knows what is outstanding. So a burst remembers the streams that its work went into.
// A wait for the whole context ends it, and so does a wait for a stream if that is the only one. After any other wait,
// such as one for an event, the driver is asked about each of these streams. It is not asked while nothing was waited
// for, but for this: before the first few launches of a burst that come after a pause. Work that a program puts behind
// its last wait would else begin a burst that lasts until the next request ends.
//
// docs/design/bursts.md has the rule and its limits. Any thread. The clock and the driver are arguments.
#pragma once

#include <cuda.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>

#include "libgpuslice/base/stream_key.h"

namespace gpuslice {

class Burst {
 public:
  static constexpr std::size_t kMostStreams = 16;  ///< with more, only a wait for the context ends the burst
  static constexpr int kLooks = 3;                 ///< so many launches look at the clock, and a pause before them
  static constexpr std::uint64_t kPauseNs = 100'000;

  /// What a wait that has returned has seen for sure.
  enum class Seen {
    kAll,     ///< all that was put on the device before it
    kStream,  ///< all that was put into one stream
    kSome,    ///< something
  };

  /// Whether there is a burst.
  bool open() const { return usual_.load(std::memory_order_relaxed) != nullptr; }
  /// Whether it is known that work goes into that stream. Then issued() need not be called; it may be false at any
  /// time.
  bool knows(CUstream stream) const { return usual_.load(std::memory_order_relaxed) == stream; }

  /// The program is about to put work into the stream. `idle(key)`: whether all in that stream is complete.
  /// `reads_results`: it copies to the host, so it belongs to what came before it, whatever pause there was.
  template <class Clock, class Idle>
  void issued(CUstream stream, Clock clock, Idle idle, bool reads_results = false) {
    const StreamKey key = stream_key(stream);
    if (looks_.load(std::memory_order_relaxed) == 0 && has(key)) return;
    const std::uint64_t now_ns = clock();
    if (!reads_results && looks_.load(std::memory_order_relaxed) > 0 &&
        now_ns > latest_ns_.load(std::memory_order_relaxed) + kPauseNs)
      end_if_idle(idle);
    const std::lock_guard lock(mutex_);
    if (begun_ns_ == 0) {
      begun_ns_ = now_ns;
      looks_.store(kLooks, std::memory_order_relaxed);
      usual_.store(kNone, std::memory_order_relaxed);
      ++number_;
    }
    add(key);
    latest_ns_.store(now_ns, std::memory_order_relaxed);
    if (const int looks = looks_.load(std::memory_order_relaxed); looks > 0) {
      looks_.store(looks - 1, std::memory_order_relaxed);
      // The handle of a per-thread stream means another stream in another thread.
      if (looks == 1 && stream != CU_STREAM_PER_THREAD) usual_.store(stream, std::memory_order_relaxed);
    }
  }

  /// A wait has returned, at that time. How long the burst was that has ended with it; none: there was none, or it goes
  /// on.
  template <class Idle>
  std::optional<std::uint64_t> waited(Seen seen, CUstream stream, std::uint64_t now_ns, Idle idle) {
    {
      const std::lock_guard lock(mutex_);
      if (begun_ns_ == 0) return std::nullopt;
      if (seen == Seen::kAll || (seen == Seen::kStream && is_only(stream_key(stream)))) return end(now_ns);
    }
    return end_if_idle(idle, now_ns);
  }

  /// The program destroys the stream.
  void destroyed(const StreamKey& key) {
    const std::lock_guard lock(mutex_);
    const std::size_t count = count_.load(std::memory_order_relaxed);
    for (std::size_t i = 0; i < count; ++i) {
      if (at(i) != key) continue;
      put(i, at(count - 1));
      count_.store(count - 1, std::memory_order_relaxed);
      usual_.store(kNone, std::memory_order_relaxed);
      ++number_;
      return;
    }
  }

  /// What was put there is gone.
  void forget() {
    const std::lock_guard lock(mutex_);
    if (begun_ns_ != 0) end(begun_ns_);
  }

 private:
  /// No stream has this handle.
  static inline const CUstream kNone = reinterpret_cast<CUstream>(~std::uintptr_t{0});

  StreamKey at(std::size_t i) const {
    return {streams_[i].load(std::memory_order_relaxed), threads_[i].load(std::memory_order_relaxed)};
  }
  void put(std::size_t i, const StreamKey& key) {
    streams_[i].store(key.first, std::memory_order_relaxed);
    threads_[i].store(key.second, std::memory_order_relaxed);
  }
  bool has(const StreamKey& key) const {
    const std::size_t count = count_.load(std::memory_order_relaxed);
    for (std::size_t i = 0; i < count; ++i)
      if (at(i) == key) return true;
    return false;
  }

  // The caller holds the mutex in what follows.

  bool is_only(const StreamKey& key) const {
    return !many_ && count_.load(std::memory_order_relaxed) == 1 && at(0) == key;
  }
  void add(const StreamKey& key) {
    if (has(key)) return;
    const std::size_t count = count_.load(std::memory_order_relaxed);
    if (count == kMostStreams) {
      many_ = true;
    } else {
      put(count, key);
      count_.store(count + 1, std::memory_order_release);
    }
    ++number_;
  }
  std::uint64_t end(std::uint64_t now_ns) {
    const std::uint64_t begun_ns = begun_ns_;
    usual_.store(nullptr, std::memory_order_relaxed);
    looks_.store(0, std::memory_order_relaxed);
    count_.store(0, std::memory_order_relaxed);
    many_ = false;
    begun_ns_ = 0;
    ++number_;
    return now_ns > begun_ns ? now_ns - begun_ns : 0;
  }

  /// Takes the mutex, but not while the driver is asked: who launches does not wait for that.
  template <class Idle>
  std::optional<std::uint64_t> end_if_idle(Idle idle, std::uint64_t now_ns = 0) {
    std::array<StreamKey, kMostStreams> streams;
    std::size_t count = 0;
    std::uint64_t number = 0;
    {
      const std::lock_guard lock(mutex_);
      if (begun_ns_ == 0 || many_) return std::nullopt;
      count = count_.load(std::memory_order_relaxed);
      for (std::size_t i = 0; i < count; ++i) streams[i] = at(i);
      number = number_;
    }
    for (std::size_t i = 0; i < count; ++i)
      if (!idle(streams[i])) return std::nullopt;
    const std::lock_guard lock(mutex_);
    if (number_ != number) return std::nullopt;
    return end(now_ns);
  }

  /// The stream that most work goes into, once issued() need not look; kNone: none, although there is a burst.
  std::atomic<CUstream> usual_{nullptr};
  std::atomic<int> looks_{0};  ///< of the next launches so many look at the clock
  std::atomic<std::size_t> count_{0};
  std::atomic<std::uint64_t> latest_ns_{0};  ///< when the latest of those that looked at the clock came
  std::array<std::atomic<CUstream>, kMostStreams> streams_{};
  std::array<std::atomic<unsigned long>, kMostStreams> threads_{};
  std::mutex mutex_;            ///< guards what follows, and changes to what is above
  bool many_ = false;           ///< there are streams that are not in the list
  std::uint64_t begun_ns_ = 0;  ///< 0: there is no burst
  std::uint64_t number_ = 0;    ///< changes whenever the list does
};

}  // namespace gpuslice
