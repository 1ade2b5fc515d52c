// The shared table as an object: opening it, the mutex that survives its holder, clients, and snapshots for readers.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "softgpu/table/table_layout.h"

namespace gpuctl::softgpu {

/// What a kernel occupies, as its owner requests it.
struct KernelRequest {
  std::uint64_t blocks = 0;
  std::uint32_t threads = 0;       ///< of a block on its SM (whole warps)
  std::uint32_t shared = 0;        ///< bytes, of a block on its SM
  std::int32_t urgency = 0;        ///< greater goes first, among the kernels of all clients
  std::uint64_t allowed = kAnySm;  ///< SMs its blocks may be placed on (bit = SM), at least one existing SM
};

/// Which context a process joins: the one that all share, its own (`apart`), or that of an MPS.
struct Joining {
  bool apart = false;
  std::uint64_t mps = 0;  ///< which MPS: any number that stands for it; 0: none
};

/// The writable view of one process. Any thread may call the methods; all but wait() need a Lock.
class Table {
 public:
  /// Maps the table, creates it if there is none (mode 0600), and registers this process as a client. `sms` is used
  /// only if there is no other living client. `percentage`: the part of the SMs, up to 100, on which the client's
  /// blocks may be at once (own_sms). Fails if the file is not a table of this version or belongs to another user.
  static Result<std::unique_ptr<Table>> open(const std::string& path, std::uint32_t sms, double percentage = 100,
                                             Joining joining = {});

  /// Gives up the client's row and kernels.
  ~Table();
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;

  /// Holds the mutex. Repairs the table first if the previous holder died.
  class Lock {
   public:
    explicit Lock(Table& table);
    ~Lock();
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;

   private:
    Table& table_;
  };

  std::uint32_t sms() const { return data_->sms.load(std::memory_order_relaxed); }
  std::uint32_t client() const { return client_; }
  /// On how many SMs, any of them, the client's blocks may be at once.
  std::uint32_t own_sms() const;

  /// Takes so many hardware queues of `all` that the clients share, until the client is gone. False: too few are left.
  bool take_queues(std::uint32_t queues, std::uint32_t all);

  /// Takes so much of the device's memory for this process. False: all processes together would have more than `all`.
  bool take_memory(std::uint64_t bytes, std::uint64_t all);
  void give_memory(std::uint64_t bytes);
  std::uint64_t own_memory() const { return data_->clients[client_].memory.load(kRelaxed); }
  /// What all processes hold, dead ones too until they are swept.
  std::uint64_t memory_held() const;

  /// Has the process of that pid carry out an order, and waits for its answer, a CUresult. None: there is no such
  /// process. Needs no Lock.
  std::optional<std::uint32_t> give_order(std::uint32_t pid, Order order, std::uint32_t within_ms);
  /// Its CUprocessState. Needs no Lock.
  std::optional<std::uint32_t> state_of(std::uint32_t pid) const;
  /// This process takes orders here from now on. Needs no Lock, as what follows.
  void obey() { data_->clients[client_].obeys.store(true); }
  struct Ordered {
    Order order = Order::kNone;
    std::uint32_t within_ms = 0;
  };
  /// Waits for an order, or until the timeout.
  Ordered next_order(std::chrono::nanoseconds timeout);
  void answer(std::uint32_t result, std::uint32_t state);

  /// Puts a kernel at the end of the queue; nullptr if the table is full. Nothing is placed before place().
  KernelRow* enqueue(const KernelRequest& request);

  /// Gives the turn to another context if that is due, places the blocks that fit and wakes the other clients that were
  /// given blocks; where the turn was given, all that have kernels. True if this client was given blocks, or the turn
  /// has gone to another context.
  bool place();

  /// Whether blocks of this client may run now. Needs no Lock.
  bool has_turn() const { return data_->turn.load(kRelaxed) == context(); }
  /// Sleeps until that may have changed, or until the timeout. Needs no Lock.
  void wait_for_turn(std::chrono::nanoseconds timeout);
  /// Sets how long the turns of its context last. 0: the usual time.
  void set_turn(std::uint32_t us) { data_->turn_us[context()].store(us, kRelaxed); }

  void free_block(KernelRow& kernel, std::uint32_t sm);
  void remove(KernelRow& kernel);

  /// Drops the rows of processes that are gone. True if there were any.
  bool sweep_dead();

  /// Leaves the table for good: drops all rows of this client. Afterwards closed() is true and nothing may be queued.
  void close();
  bool closed() const { return closed_; }

  /// Wakes wait() of this client.
  void kick();

  /// The value to pass to wait(); read it before you look at the table.
  std::uint32_t wake_count() const;

  /// Sleeps until, after `seen` was read, another client has placed blocks of this client or kick() was called, or
  /// until the timeout.
  void wait(std::uint32_t seen, std::chrono::nanoseconds timeout);

 private:
  explicit Table(TableData* data) : data_(data) {}
  Result<void> join(std::uint32_t sms, double percentage, Joining joining);
  Result<std::uint32_t> context_for(Joining joining);
  std::uint32_t context() const { return context_; }
  ClientRow* obeying(std::uint32_t pid) const;

  TableData* data_;
  std::uint32_t client_ = 0, context_ = kSharedContext;
  bool closed_ = true;  ///< true until this process has joined
};

/// One kernel that is queued or running, as seen in a snapshot.
struct KernelView {
  std::uint32_t pid = 0;
  std::uint32_t context = 0;
  std::uint64_t ticket = 0;  ///< order of arrival on the GPU
  std::int32_t urgency = 0;
  std::uint32_t threads = 0;  ///< of a block on its SM
  std::uint32_t shared = 0;   ///< bytes, of a block on its SM
  std::uint64_t blocks = 0;   ///< of the grid
  std::uint64_t placed = 0;   ///< of those, the ones on an SM now or finished
  std::uint64_t finished = 0;
  std::uint64_t allowed = 0;            ///< SMs its blocks may be placed on (bit = SM)
  std::vector<std::uint32_t> resident;  ///< blocks on each SM now
};

struct Snapshot {
  std::uint32_t sms = 0;
  std::vector<std::uint32_t> clients;  ///< pids of living processes that use the software GPU
  std::uint32_t turn = 0;              ///< the context whose blocks run
  std::vector<std::uint64_t> turns;    ///< by context: how many it has begun
  std::vector<std::uint32_t> turn_us;  ///< by context: how long each lasts; 0: the usual time
  std::vector<KernelView> kernels;     ///< of living processes, in order of arrival
};

/// A read-only view, for the daemon and for tests. It never blocks a client, and clients never see it.
class TableReader {
 public:
  /// Fails if there is no table yet at that path, or it is not one.
  static Result<std::unique_ptr<TableReader>> open(const std::string& path);
  ~TableReader();
  TableReader(const TableReader&) = delete;
  TableReader& operator=(const TableReader&) = delete;

  /// Rows are read one by one, so two rows may be some microseconds apart. Reads /proc once for each client.
  Snapshot snapshot() const;

  /// The thread that holds the mutex now (gettid), or 0. While it is stopped, all clients wait.
  std::uint32_t holder() const;

 private:
  explicit TableReader(const TableData* data) : data_(data) {}
  const TableData* data_;
};

}  // namespace gpuctl::softgpu
