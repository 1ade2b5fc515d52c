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

#include "libgpuslice/base/short_lock.h"
#include "libgpuslice/base/stream_key.h"

namespace gpuslice {

class Burst {
 public:
  static constexpr std::size_t kMostStreams = 16;  ///< with more, only a wait for the context ends the burst
  static constexpr std::uint32_t kLooks = 3;       ///< so many launches look at the clock, and a pause before them
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

  /// The program is about to put work into the stream. `idle(key, there)`: whether all in that stream is complete. It
  /// keeps out whoever calls destroyed() or forget(), and then asks there(): else the stream may be destroyed by now.
  /// `reads_results`: it copies to the host, so it belongs to what came before it, whatever pause there was.
  template <class Clock, class Idle>
  void issued(CUstream stream, Clock clock, Idle idle, bool reads_results = false) {
    const StreamKey key = stream_key(stream);
    const bool looks = looks_.load(std::memory_order_relaxed) > 0;
    if (!looks && has(key)) return;
    const std::uint64_t now_ns = clock();
    if (looks && !reads_results && now_ns > latest_ns_.load(std::memory_order_relaxed) + kPauseNs)
      end_if_idle(idle, [](std::uint64_t) {});
    const std::lock_guard lock(lock_);
    if (begun_ns_ == 0) return begin(key, now_ns);
    latest_ns_.store(now_ns, std::memory_order_relaxed);
    add(key);
    if (const std::uint32_t left = looks_.load(std::memory_order_relaxed); left > 0) {
      looks_.store(static_cast<std::uint8_t>(left - 1), std::memory_order_relaxed);
      // The handle of a per-thread stream means another stream in another thread.
      if (left == 1 && stream != CU_STREAM_PER_THREAD) usual_.store(stream, std::memory_order_relaxed);
    }
  }

  /// issued() where it begins a burst and no other thread is in the way. It calls nothing, so it saves no registers.
  /// False: nothing is done.
  bool try_begin(CUstream stream, std::uint64_t now_ns) {
    if (open() || stream == CU_STREAM_PER_THREAD || !lock_.try_lock()) return false;
    const bool begins = begun_ns_ == 0;
    if (begins) begin({stream, 0}, now_ns);
    lock_.unlock();
    return begins;
  }

  /// A wait has returned, at that time. If the burst has ended with it: count(ns), how long it was, which threads call
  /// one after the other and which is short.
  template <class Idle, class Count>
  void waited(Seen seen, CUstream stream, std::uint64_t now_ns, Idle idle, Count count) {
    {
      const std::lock_guard lock(lock_);
      if (begun_ns_ == 0) return;
      if (seen == Seen::kAll || (seen == Seen::kStream && is_only(stream_key(stream)))) return count(end(now_ns));
    }
    end_if_idle(idle, count, now_ns);
  }

  /// The same of waited(), where the burst ends by the wait alone.
  template <class Count>
  bool try_end(Seen seen, CUstream stream, std::uint64_t now_ns, Count count) {
    if (seen == Seen::kSome || stream == CU_STREAM_PER_THREAD || !lock_.try_lock()) return false;
    const bool ends = begun_ns_ != 0 && (seen == Seen::kAll || is_only({stream, 0}));
    if (ends) count(end(now_ns));
    lock_.unlock();
    return ends;
  }

  /// Whether all that was put into its streams is complete, as far as that is known. Where there is no burst it is.
  template <class Idle>
  bool idle(Idle idle) {
    return streams_idle(idle).has_value();
  }

  /// Whether one of its streams is known not to be complete: `runs(key, there)`, as for issued().
  template <class Runs>
  bool any_runs(Runs runs) {
    const List list = copy();
    const auto there = [&] { return number_.load(std::memory_order_acquire) == list.number; };
    return std::any_of(list.streams.begin(), list.streams.begin() + list.count,
                       [&](const StreamKey& key) { return runs(key, there); });
  }

  /// What count() of waited() writes is written here too, at no other time.
  template <class Count>
  void counting(Count count) {
    const std::lock_guard lock(lock_);
    count();
  }

  /// The program destroys the stream.
  void destroyed(const StreamKey& key) {
    const std::lock_guard lock(lock_);
    const std::uint32_t count = count_.load(std::memory_order_relaxed);
    for (std::size_t i = 0; i < count; ++i) {
      if (at(i) != key) continue;
      put(i, at(count - 1));
      count_.store(static_cast<std::uint8_t>(count - 1), std::memory_order_relaxed);
      usual_.store(kNone, std::memory_order_relaxed);
      list_changed();
      return;
    }
  }

  /// What was put there is gone.
  void forget() {
    const std::lock_guard lock(lock_);
    if (begun_ns_ != 0) end(begun_ns_);
  }

 private:
  /// No stream has this handle.
  static inline const CUstream kNone = reinterpret_cast<CUstream>(~std::uintptr_t{0});

  struct Key {
    std::atomic<CUstream> stream{nullptr};
    std::atomic<unsigned long> thread{0};
  };

  StreamKey at(std::size_t i) const {
    return {keys_[i].stream.load(std::memory_order_relaxed), keys_[i].thread.load(std::memory_order_relaxed)};
  }
  void put(std::size_t i, const StreamKey& key) {
    keys_[i].stream.store(key.first, std::memory_order_relaxed);
    keys_[i].thread.store(key.second, std::memory_order_relaxed);
  }
  bool has(const StreamKey& key) const {
    const std::size_t count = count_.load(std::memory_order_relaxed);
    for (std::size_t i = 0; i < count; ++i)
      if (at(i) == key) return true;
    return false;
  }

  // The caller holds the lock in what follows.

  void list_changed() { number_.store(number_.load(std::memory_order_relaxed) + 1, std::memory_order_release); }
  bool is_only(const StreamKey& key) const {
    return !many_ && count_.load(std::memory_order_relaxed) == 1 && at(0) == key;
  }
  void begin(const StreamKey& key, std::uint64_t now_ns) {
    begun_ns_ = now_ns;
    latest_ns_.store(now_ns, std::memory_order_relaxed);
    list_changed();
    put(0, key);
    count_.store(1, std::memory_order_release);
    looks_.store(kLooks - 1, std::memory_order_relaxed);
    usual_.store(kNone, std::memory_order_relaxed);
  }
  void add(const StreamKey& key) {
    if (has(key)) return;
    const std::uint32_t count = count_.load(std::memory_order_relaxed);
    if (count == kMostStreams) {
      many_ = true;
    } else {
      put(count, key);
      count_.store(static_cast<std::uint8_t>(count + 1), std::memory_order_release);
    }
    list_changed();
  }
  std::uint64_t end(std::uint64_t now_ns) {
    const std::uint64_t begun_ns = begun_ns_;
    usual_.store(nullptr, std::memory_order_relaxed);
    looks_.store(0, std::memory_order_relaxed);
    count_.store(0, std::memory_order_relaxed);
    many_ = false;
    begun_ns_ = 0;
    list_changed();
    return now_ns > begun_ns ? now_ns - begun_ns : 0;
  }

  /// Holds the lock, but not while the driver is asked: who launches does not wait for that.
  template <class Idle, class Count>
  [[gnu::noinline]] void end_if_idle(Idle idle, Count counts, std::uint64_t now_ns = 0) {
    const std::optional<std::uint32_t> number = streams_idle(idle);
    if (!number) return;
    const std::lock_guard lock(lock_);
    if (begun_ns_ != 0 && number_.load(std::memory_order_acquire) == *number) counts(end(now_ns));
  }
  /// The number of the list whose streams are idle, all that there are; none: they are not, or it is not known.
  template <class Idle>
  std::optional<std::uint32_t> streams_idle(Idle idle) {
    const List list = copy();
    const auto there = [&] { return number_.load(std::memory_order_acquire) == list.number; };
    if (list.many) return std::nullopt;
    for (std::size_t i = 0; i < list.count; ++i)
      if (!idle(list.streams[i], there)) return std::nullopt;
    return there() ? std::optional(list.number) : std::nullopt;
  }

  struct List {
    std::array<StreamKey, kMostStreams> streams;
    std::uint32_t count, number;
    bool many;
  };
  /// Its streams; none: there is no burst. Takes the lock.
  List copy() {
    const std::lock_guard lock(lock_);
    List list{.streams = {}, .count = 0, .number = number_.load(std::memory_order_relaxed), .many = many_};
    if (begun_ns_ != 0) list.count = count_.load(std::memory_order_relaxed);
    for (std::size_t i = 0; i < list.count; ++i) list.streams[i] = at(i);
    return list;
  }

  // A burst of one stream touches what comes before the second of keys_: one cache line, with what Activity has there.

  /// The stream that most work goes into, once issued() need not look; kNone: none, although there is a burst.
  std::atomic<CUstream> usual_{nullptr};
  std::atomic<std::uint64_t> latest_ns_{0};  ///< when the latest of those that looked at the clock came
  std::atomic<std::uint8_t> count_{0};       ///< of keys_
  std::atomic<std::uint8_t> looks_{0};       ///< of the next launches so many look at the clock
  ShortLock lock_;                           ///< guards what follows, and changes to the rest
  bool many_ = false;                        ///< there are streams that are not in the list
  std::atomic<std::uint32_t> number_{0};     ///< changes whenever the list does; read without the lock too
  std::uint64_t begun_ns_ = 0;               ///< 0: there is no burst
  std::array<Key, kMostStreams> keys_{};
};

}  // namespace gpuslice
