// The shared table: which blocks of which process are on which SM, and which kernels wait.
//
// It is one file, which every process of a user that uses the software GPU maps. Its robust mutex guards all writes. A
// process can die at any instruction, also while it holds the mutex. So the state is kept in fields that each change by
// one store:
//
//   granted[sm]  blocks of this kernel ever placed on that SM; written by the process that holds the mutex
//   freed[sm]    how many of those have finished; written by the owner
//
// A kernel's resident blocks are granted - freed, and its placed blocks are the sum of granted. SmUse is only a sum
// over the kernels. It is kept for speed, and recomputed when the mutex is inherited from a dead process.
// Fields are atomics (relaxed) because snapshots read them without the mutex, through a read-only mapping.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>

namespace gpuctl::softgpu {

/// The mutex of the table orders what its fields say.
inline constexpr auto kRelaxed = std::memory_order_relaxed;

inline constexpr std::uint32_t kTableMagic = 0x73677074;  // "sgpt"
inline constexpr std::uint32_t kTableVersion = 7;
inline constexpr std::uint32_t kMaxSms = 64;  ///< a set of SMs is one 64-bit mask
inline constexpr std::uint64_t kAnySm = ~std::uint64_t{0};
inline constexpr std::uint32_t kMaxClients = 64;  ///< a set of clients is one 64-bit mask
inline constexpr std::uint32_t kMaxKernels = 512;
/// Contexts take turns on the GPU: one that clients share, one of each client that is apart, and one for each MPS.
inline constexpr std::uint32_t kMaxMps = 16;
inline constexpr std::uint32_t kSharedContext = 0, kMpsContext = kMaxClients + 1, kMaxContexts = kMpsContext + kMaxMps;
/// How long a turn lasts, unless TableData::turn_us says otherwise. The GPU rounds up to kLeastTurnNs.
inline constexpr std::uint64_t kUsualTurnNs = 20'000'000, kLeastTurnNs = 1'000'000;

struct SmUse {
  std::atomic<std::uint32_t> threads;
  std::atomic<std::uint32_t> blocks;
  std::atomic<std::uint32_t> shared;  ///< bytes
};

struct ClientRow {
  std::atomic<std::uint32_t> pid;         ///< 0: the row is free
  std::atomic<std::uint32_t> wake;        ///< futex word: +1 when another client has placed blocks of this client
  std::atomic<std::uint64_t> start_time;  ///< of the process, in clock ticks since boot: detects a reused pid
  std::atomic<std::uint32_t> most_sms;    ///< on how many SMs, any of them, its blocks may be at once; 0: on all
  std::atomic<std::uint32_t> context;     ///< that its kernels run in
  std::atomic<std::uint32_t> queues;      ///< hardware queues that it has of those that all share; 0: none of them
  std::atomic<std::uint64_t> memory;      ///< bytes of the device's memory that it holds
  // What another process, or this one, has it do (cuCheckpointProcess*), in the table of its first device alone.
  pthread_mutex_t ordering;              ///< robust, process-shared: held by who orders something, until the answer
  std::atomic<std::uint32_t> order;      ///< futex word: an Order; 0: nothing is ordered
  std::atomic<std::uint32_t> within_ms;  ///< how long the order may take; 0: no end
  std::atomic<std::uint32_t> answer;     ///< to the latest order, a CUresult
  std::atomic<std::uint32_t> state;      ///< a CUprocessState
  std::atomic<bool> obeys;               ///< it takes orders here
};

/// ClientRow::order
enum class Order : std::uint32_t { kNone, kLock, kCheckpoint, kRestore, kUnlock };

struct KernelRow {
  std::atomic<std::uint64_t> ticket;   ///< order of arrival; 0: the row is free. Stored last, cleared first
  std::atomic<std::uint64_t> blocks;   ///< of the grid
  std::atomic<std::uint32_t> client;   ///< index of the owner's ClientRow
  std::atomic<std::int32_t> urgency;   ///< greater goes first, among all clients
  std::atomic<std::uint32_t> threads;  ///< that each block occupies on its SM
  std::atomic<std::uint32_t> shared;   ///< bytes that each block occupies on its SM
  std::atomic<std::uint64_t> allowed;  ///< SMs that its blocks may be placed on (bit = SM); all of a GPU's: kAnySm
  std::atomic<std::uint32_t> granted[kMaxSms];
  std::atomic<std::uint32_t> freed[kMaxSms];
};

struct TableData {
  std::atomic<std::uint32_t> magic;  ///< stored last by the process that creates the table
  std::uint32_t version;
  std::uint32_t size;              ///< sizeof(TableData)
  std::atomic<std::uint32_t> sms;  ///< 1 to kMaxSms; changes only while there are no clients
  pthread_mutex_t mutex;           ///< robust, process-shared
  std::atomic<std::uint64_t> next_ticket;
  std::atomic<std::uint32_t> turn;                   ///< the context whose blocks run; SmUse counts only these
  std::atomic<std::uint64_t> turn_began_ns;          ///< steady_clock
  std::atomic<std::uint32_t> turn_us[kMaxContexts];  ///< how long its turns last; 0: the usual time
  std::atomic<std::uint64_t> turns[kMaxContexts];    ///< how many it has begun
  std::atomic<std::uint64_t> mps[kMaxMps];           ///< whose context kMpsContext + i is: Joining::mps; 0: nobody's
  std::atomic<std::uint32_t> rows;                   ///< all KernelRows in use are below this index
  SmUse use[kMaxSms];
  ClientRow clients[kMaxClients];
  KernelRow kernels[kMaxKernels];
};

static_assert(std::atomic<std::uint32_t>::is_always_lock_free && std::atomic<std::uint64_t>::is_always_lock_free);

}  // namespace gpuctl::softgpu
