// The stub page (stub.h) as a memfd and a mapping, and futexes on its words.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/result.h"
#include "ipc/stub.h"
#include "ipc/unique_fd.h"

namespace gpuctl::ipc {

/// The version of the stub page that this program was built with: kStubVersion.
std::uint32_t stub_version() noexcept;

/// A mapped stub page; the destructor unmaps it. The memory is shared with a process that may write anything at any
/// time: read each field once, through load(), and check the value that was read.
class StubMap {
 public:
  StubMap() = default;
  StubMap(StubMap&& other) noexcept : stub_(std::exchange(other.stub_, nullptr)) {}
  StubMap& operator=(StubMap&& other) noexcept;
  ~StubMap();

  /// Client side: maps a stub page received from the daemon, read-write, and checks that it has the right size, magic,
  /// version and a sane number of devices, and that it cannot shrink: an access behind its end would kill the program.
  /// The descriptor may be closed afterwards.
  static Result<StubMap> map(int fd) noexcept;
  /// Client side: the same with one that the daemon has just made and that has nothing in it yet. Its memory is taken
  /// here, so it counts as the client's, and nobody can give it back from then on (NewStub::is_sealed).
  static Result<StubMap> take(int fd) noexcept;
  /// Whether the daemon has begun it as it should be.
  Result<void> check() const noexcept;

  Stub* get() const noexcept { return stub_; }
  Stub* operator->() const noexcept { return stub_; }
  explicit operator bool() const noexcept { return stub_ != nullptr; }

 private:
  friend struct NewStub;
  explicit StubMap(Stub* stub) noexcept : stub_(stub) {}
  Stub* stub_ = nullptr;
};

/// Daemon side: a new stub page. The memfd is mode 0600, close-on-exec and sealed against shrinking and growing, so a
/// client cannot make the daemon fault.
struct NewStub {
  UniqueFd fd;
  StubMap map;
  /// Nothing is in it, and it takes no memory.
  static Result<NewStub> create() noexcept;
  /// One that is begun.
  static Result<NewStub> create(std::uint32_t devices, std::uint32_t client_pid) noexcept;
  /// Whether this kernel has what is_sealed() wants. An error says why it has not.
  static Result<void> can_be_sealed() noexcept;
  /// Whether its memory is there and cannot be given back: the client has taken it. Before that whoever touches the
  /// page may have to wait for holes that a client punches into it.
  bool is_sealed() const noexcept;
  /// Keeps its memory from being swapped out: it counts as the client's, who could see to it that it does not come back
  /// in, and the daemon would wait for it. False: it could not be brought in. True, too, where this process may lock no
  /// more memory (RLIMIT_MEMLOCK).
  bool stays() const noexcept;
  /// Fills its head in; everything else is zero, or what the client has written. At most kMaxDevices.
  void begin(std::uint32_t devices, std::uint32_t client_pid) noexcept;
};

/// One acquire load or release store of a shared word, of 16, 32 or 64 bits.
template <class T>
T load(const T& word) noexcept {
  return __atomic_load_n(&word, __ATOMIC_ACQUIRE);
}
template <class T>
void store(T& word, T value) noexcept {
  __atomic_store_n(&word, value, __ATOMIC_RELEASE);
}

/// Writes a struct that has a `version`: odd while `write()` stores the words, and another even one afterwards. One
/// writer at a time.
template <class Versioned, class Write>
void write_versioned(Versioned& out, Write write) {
  const std::uint32_t version = load(out.version);
  store(out.version, version | 1);
  // The version must be odd before anything else changes.
  std::atomic_thread_fence(std::memory_order_release);
  write();
  store(out.version, (version | 1) + 1);
}

/// Calls `read()`, which loads the words, until the struct did not change meanwhile. False: it changed three times.
template <class Versioned, class Read>
bool read_versioned(const Versioned& shared, Read read) {
  for (int tries = 0; tries < 3; ++tries) {
    const std::uint32_t version = load(shared.version);
    read();
    if (version % 2 == 0 && load(shared.version) == version) return true;
  }
  return false;
}

/// Place `number % kRecords` of the ring of records.
inline Record& record_at(Stub& stub, std::uint32_t number) noexcept {
  return reinterpret_cast<Record*>(reinterpret_cast<std::byte*>(&stub) + kRecordsOffset)[number % kRecords];
}

/// The latencies of a device, which is below kMaxDevices.
inline LatencyCounts& latency_at(Stub& stub, std::size_t device) noexcept {
  return reinterpret_cast<LatencyCounts*>(reinterpret_cast<std::byte*>(&stub) + kLatencyOffset)[device];
}

/// A program's agent is one thread. Others may let thousands wait, and whoever wakes them pays for each.
inline constexpr int kMostWoken = 8;
/// Wakes threads that wait on `word`, in every process that maps it, those first that came first. Returns how many.
int futex_wake(const std::uint32_t& word) noexcept;

}  // namespace gpuctl::ipc
