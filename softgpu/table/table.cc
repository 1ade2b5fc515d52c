#include "softgpu/table/table.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>
#include <thread>

#include "softgpu/host/futex.h"
#include "softgpu/host/process.h"
#include "softgpu/table/device_limits.h"
#include "softgpu/table/placement.h"

namespace gpuctl::softgpu {
namespace {

/// A wake-up may go to a thread of a program that is stopped (SIGSTOP). Then the others that wait must look themselves.
constexpr long kLookAgainNs = 20'000'000;
constexpr long kSecondNs = 1'000'000'000;

Error file_error(const std::string& path, const char* what) {
  return fail(path + ": " + what + ": " + std::strerror(errno));
}

struct File {
  int fd;
  ~File() {
    if (fd < 0) return;
    flock(fd, LOCK_UN);  // closing alone does not unlock: the mapping keeps the open file
    close(fd);
  }
};

void create_table(TableData& data, std::uint32_t sms) {
  std::memset(static_cast<void*>(&data), 0, sizeof data);
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_init(&data.mutex, &attributes);
  for (ClientRow& row : data.clients) pthread_mutex_init(&row.ordering, &attributes);
  pthread_mutexattr_destroy(&attributes);
  data.version = kTableVersion;
  data.size = sizeof(TableData);
  data.sms.store(sms, kRelaxed);
  data.next_ticket.store(1, kRelaxed);
  data.magic.store(kTableMagic, std::memory_order_release);
}

bool is_table(const TableData& data) {
  return data.magic.load(std::memory_order_acquire) == kTableMagic && data.version == kTableVersion &&
         data.size == sizeof(TableData) && data.sms.load(kRelaxed) >= 1 && data.sms.load(kRelaxed) <= kMaxSms;
}

/// The pairs of SMs that are in the part, at least one. 0: all SMs.
std::uint32_t part_of_sms(double percentage, std::uint32_t sms) {
  const auto part = static_cast<std::uint32_t>(sms * percentage / 100);
  return part < sms ? std::max(part - part % 2, 2u) : 0;
}

/// 0 or EOWNERDEAD: it is locked now.
int try_for_a_while(pthread_mutex_t& mutex) {
#ifdef __SANITIZE_THREAD__
  // Thread checks do not know clocklock in GCC 12, and do not see that timedlock takes the lock of a process that
  // ended.
  std::this_thread::sleep_for(std::chrono::microseconds(20));
  return pthread_mutex_trylock(&mutex);
#else
  timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_nsec += kLookAgainNs;
  until.tv_sec += until.tv_nsec / kSecondNs;
  until.tv_nsec %= kSecondNs;
  return pthread_mutex_timedlock(&mutex, &until);
#endif
}

/// True if its holder has died.
bool lock_robust(pthread_mutex_t& mutex) {
  int got = pthread_mutex_trylock(&mutex);
  while (got == EBUSY || got == ETIMEDOUT) got = try_for_a_while(mutex);
  return got == EOWNERDEAD;
}

}  // namespace

Result<std::unique_ptr<Table>> Table::open(const std::string& path, std::uint32_t sms, double percentage,
                                           Joining joining) {
  const File file{::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600)};
  if (file.fd < 0) return file_error(path, "cannot open the SM table");
  // The flock covers only creation and joining; the kernel drops it when its holder dies.
  struct stat status {};
  if (flock(file.fd, LOCK_EX) != 0 || fstat(file.fd, &status) != 0) return file_error(path, "cannot lock the SM table");
  if (status.st_uid != geteuid() || !S_ISREG(status.st_mode)) {
    return fail(path + ": the SM table must be a regular file of this user");
  }
  const bool create = status.st_size == 0;
  if (create && ftruncate(file.fd, sizeof(TableData)) != 0) return file_error(path, "cannot size the SM table");
  if (!create && status.st_size != sizeof(TableData)) return fail(path + ": not an SM table of this version");
  void* mapped = mmap(nullptr, sizeof(TableData), PROT_READ | PROT_WRITE, MAP_SHARED, file.fd, 0);
  if (mapped == MAP_FAILED) return file_error(path, "cannot map the SM table");
  auto* data = static_cast<TableData*>(mapped);
  // Magic 0 in a file of the right size: its creator died between ftruncate and the last store.
  if (create || data->magic.load(std::memory_order_acquire) == 0) create_table(*data, sms);
  std::unique_ptr<Table> table(new Table(data));
  if (!is_table(*data)) return fail(path + ": not an SM table of this version");
  if (const Result<void> joined = table->join(sms, percentage, joining); joined.has_error()) return joined.error();
  return table;
}

Result<void> Table::join(std::uint32_t sms, double percentage, Joining joining) {
  const Lock lock(*this);
  sweep_dead();
  const auto used = [](const ClientRow& row) { return row.pid.load(kRelaxed) != 0; };
  if (std::none_of(std::begin(data_->clients), std::end(data_->clients), used)) data_->sms.store(sms, kRelaxed);
  ClientRow* row = std::find_if_not(std::begin(data_->clients), std::end(data_->clients), used);
  if (row == std::end(data_->clients)) {
    return fail("the software GPU serves at most " + std::to_string(kMaxClients) + " processes at a time");
  }
  client_ = static_cast<std::uint32_t>(row - data_->clients);
  row->start_time.store(process_start_time(static_cast<std::uint32_t>(getpid())), kRelaxed);
  row->most_sms.store(part_of_sms(percentage, this->sms()), kRelaxed);
  row->queues.store(0, kRelaxed);
  row->memory.store(0, kRelaxed);
  row->obeys.store(false);
  row->order.store(0, kRelaxed);
  row->state.store(0, kRelaxed);
  const Result<std::uint32_t> context = context_for(joining);
  if (!context) return context.error();
  context_ = *context;
  row->context.store(context_, kRelaxed);
  row->pid.store(static_cast<std::uint32_t>(getpid()), kRelaxed);
  closed_ = false;
  return {};
}

/// A context that nobody was in has turns of the usual length.
Result<std::uint32_t> Table::context_for(Joining joining) {
  const auto none_in = [this](std::uint32_t context) {
    return std::ranges::none_of(data_->clients, [context](const ClientRow& row) {
      return row.pid.load(kRelaxed) != 0 && row.context.load(kRelaxed) == context;
    });
  };
  std::uint32_t context = kSharedContext;
  if (joining.apart) {
    context = client_ + 1;
  } else if (joining.mps != 0) {
    const auto is = [&](std::uint64_t mps) { return [mps](const auto& one) { return one.load(kRelaxed) == mps; }; };
    auto found = std::ranges::find_if(data_->mps, is(joining.mps));
    for (std::uint32_t i = 0; found == std::end(data_->mps) && i < kMaxMps; ++i)
      if (none_in(kMpsContext + i)) found = std::begin(data_->mps) + i;
    if (found == std::end(data_->mps))
      return fail("the software GPU serves at most " + std::to_string(kMaxMps) + " MPS at a time");
    found->store(joining.mps, kRelaxed);
    context = kMpsContext + static_cast<std::uint32_t>(found - std::begin(data_->mps));
  }
  if (context != kSharedContext && none_in(context)) data_->turn_us[context].store(0, kRelaxed);
  return context;
}

std::uint32_t Table::own_sms() const {
  const std::uint32_t most = data_->clients[client_].most_sms.load(kRelaxed);
  return most == 0 ? sms() : most;
}

bool Table::take_queues(std::uint32_t queues, std::uint32_t all) {
  sweep_dead();
  std::uint32_t taken = queues;
  for (const ClientRow& row : data_->clients)
    if (row.pid.load(kRelaxed) != 0) taken += row.queues.load(kRelaxed);
  if (taken > all) return false;
  data_->clients[client_].queues.store(queues, kRelaxed);
  return true;
}

std::uint64_t Table::memory_held() const {
  std::uint64_t held = 0;
  for (const ClientRow& row : data_->clients)
    if (row.pid.load(kRelaxed) != 0) held += row.memory.load(kRelaxed);
  return held;
}

bool Table::take_memory(std::uint64_t bytes, std::uint64_t all) {
  if (closed_) return true;
  const auto fits = [&] { return bytes <= all - std::min(all, memory_held()); };
  if (!fits() && (!sweep_dead() || !fits())) return false;
  data_->clients[client_].memory.fetch_add(bytes, kRelaxed);
  return true;
}

void Table::give_memory(std::uint64_t bytes) {
  if (!closed_) data_->clients[client_].memory.fetch_sub(bytes, kRelaxed);
}

ClientRow* Table::obeying(std::uint32_t pid) const {
  ClientRow* const row = std::ranges::find_if(
      data_->clients, [pid](const ClientRow& one) { return one.pid.load(kRelaxed) == pid && one.obeys.load(); });
  return row == std::end(data_->clients) || !process_alive(pid, row->start_time.load(kRelaxed)) ? nullptr : row;
}

std::optional<std::uint32_t> Table::state_of(std::uint32_t pid) const {
  const ClientRow* row = obeying(pid);
  return row == nullptr ? std::nullopt : std::optional(row->state.load());
}

std::optional<std::uint32_t> Table::give_order(std::uint32_t pid, Order order, std::uint32_t within_ms) {
  ClientRow* const row = obeying(pid);
  if (row == nullptr) return std::nullopt;
  if (lock_robust(row->ordering)) pthread_mutex_consistent(&row->ordering);
  const auto wait = [&] {  // for what a caller that has died ordered, too
    for (std::uint32_t seen = row->order.load(); seen != 0; seen = row->order.load()) {
      if (obeying(pid) != row) return false;
      futex_wait(row->order, seen, std::chrono::nanoseconds(kLookAgainNs));
    }
    return true;
  };
  bool answered = wait();
  if (answered) {
    row->within_ms.store(within_ms);
    row->order.store(static_cast<std::uint32_t>(order));
    futex_wake(row->order);
    answered = wait();
  }
  const std::uint32_t answer = row->answer.load();
  pthread_mutex_unlock(&row->ordering);
  return answered ? std::optional(answer) : std::nullopt;
}

Table::Ordered Table::next_order(std::chrono::nanoseconds timeout) {
  const ClientRow& own = data_->clients[client_];
  if (own.order.load() == 0) futex_wait(own.order, 0, timeout);
  return {static_cast<Order>(own.order.load()), own.within_ms.load()};
}

void Table::answer(std::uint32_t result, std::uint32_t state) {
  ClientRow& own = data_->clients[client_];
  own.state.store(state);
  own.answer.store(result);
  own.order.store(0);
  futex_wake(own.order);
}

Table::~Table() {
  if (!closed_) {
    const Lock lock(*this);
    close();
  }
  munmap(data_, sizeof(TableData));
}

Table::Lock::Lock(Table& table) : table_(table) {
  if (!lock_robust(table.data_->mutex)) return;
  recount(*table.data_);
  pthread_mutex_consistent(&table.data_->mutex);
}

Table::Lock::~Lock() {
  pthread_mutex_unlock(&table_.data_->mutex);
}

KernelRow* Table::enqueue(const KernelRequest& request) {
  KernelRow* row = find_free_row(*data_);
  if (row == nullptr) return nullptr;
  row->blocks.store(request.blocks, kRelaxed);
  row->client.store(client_, kRelaxed);
  row->urgency.store(request.urgency, kRelaxed);
  row->threads.store(request.threads, kRelaxed);
  row->shared.store(request.shared, kRelaxed);
  row->allowed.store(request.allowed, kRelaxed);
  for (std::uint32_t sm = 0; sm < kMaxSms; ++sm) {
    row->granted[sm].store(0, kRelaxed);
    row->freed[sm].store(0, kRelaxed);
  }
  const std::uint64_t ticket = data_->next_ticket.load(kRelaxed);
  data_->next_ticket.store(ticket + 1, kRelaxed);
  row->ticket.store(ticket, std::memory_order_release);
  return row;
}

bool Table::place() {
  const bool turned =
      give_turn(*data_, static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count()));
  std::uint64_t clients = place_blocks(*data_);
  if (turned) {
    futex_wake(data_->turn);
    for (const KernelRow& kernel : data_->kernels)  // whoever waits for its turn watches the end of this one
      if (kernel.ticket.load(kRelaxed) != 0) clients |= std::uint64_t{1} << kernel.client.load(kRelaxed);
  }
  for (std::uint32_t client = 0; client < kMaxClients; ++client) {
    if ((clients >> client & 1) == 0) continue;
    if (client == client_ && !turned) continue;  // its caller takes what was placed
    data_->clients[client].wake.fetch_add(1, std::memory_order_release);
    futex_wake(data_->clients[client].wake);
  }
  return (clients >> client_ & 1) != 0;
}

void Table::wait_for_turn(std::chrono::nanoseconds timeout) {
  const std::uint32_t turn = data_->turn.load(kRelaxed);
  if (turn != context_) futex_wait(data_->turn, turn, timeout);
}

void Table::free_block(KernelRow& kernel, std::uint32_t sm) {
  softgpu::free_block(*data_, kernel, sm);
}

void Table::remove(KernelRow& kernel) {
  remove_kernel(*data_, kernel);
}

bool Table::sweep_dead() {
  bool found = false;
  for (std::uint32_t client = 0; client < kMaxClients; ++client) {
    ClientRow& row = data_->clients[client];
    const std::uint32_t pid = row.pid.load(kRelaxed);
    if (pid == 0 || (client == client_ && !closed_)) continue;
    if (process_alive(pid, row.start_time.load(kRelaxed))) continue;
    for (KernelRow& kernel : data_->kernels) {
      if (kernel.ticket.load(kRelaxed) != 0 && kernel.client.load(kRelaxed) == client) remove_kernel(*data_, kernel);
    }
    row.pid.store(0, kRelaxed);
    found = true;
  }
  return found;
}

void Table::close() {
  for (KernelRow& kernel : data_->kernels) {
    if (kernel.ticket.load(kRelaxed) != 0 && kernel.client.load(kRelaxed) == client_) remove_kernel(*data_, kernel);
  }
  data_->clients[client_].pid.store(0, kRelaxed);
  closed_ = true;
  place();
}

void Table::kick() {
  data_->clients[client_].wake.fetch_add(1, std::memory_order_release);
  futex_wake(data_->clients[client_].wake);
}

std::uint32_t Table::wake_count() const {
  return data_->clients[client_].wake.load(std::memory_order_acquire);
}

void Table::wait(std::uint32_t seen, std::chrono::nanoseconds timeout) {
  futex_wait(data_->clients[client_].wake, seen, timeout);
}

Result<std::unique_ptr<TableReader>> TableReader::open(const std::string& path) {
  const File file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (file.fd < 0) return file_error(path, "cannot open the SM table");
  struct stat status {};
  void* mapped = MAP_FAILED;
  if (fstat(file.fd, &status) == 0 && status.st_size == sizeof(TableData)) {
    mapped = mmap(nullptr, sizeof(TableData), PROT_READ, MAP_SHARED, file.fd, 0);
  }
  if (mapped == MAP_FAILED) return fail(path + ": not an SM table of this version");
  const auto* data = static_cast<const TableData*>(mapped);
  std::unique_ptr<TableReader> reader(new TableReader(data));
  if (!is_table(*data)) return fail(path + ": not an SM table of this version");
  return reader;
}

TableReader::~TableReader() {
  munmap(const_cast<TableData*>(data_), sizeof(TableData));
}

std::uint32_t TableReader::holder() const {
  // The kernel prescribes the word of a robust mutex (see set_robust_list), and glibc keeps it first.
  return std::atomic_ref(const_cast<int&>(data_->mutex.__data.__lock)).load(kRelaxed) & FUTEX_TID_MASK;
}

Snapshot TableReader::snapshot() const {
  Snapshot result;
  result.sms = std::min(data_->sms.load(kRelaxed), kMaxSms);
  result.turn = data_->turn.load(kRelaxed);
  for (const auto& turns : data_->turns) result.turns.push_back(turns.load(kRelaxed));
  for (const auto& us : data_->turn_us) result.turn_us.push_back(us.load(kRelaxed));
  std::uint64_t alive = 0;
  for (std::uint32_t client = 0; client < kMaxClients; ++client) {
    const std::uint32_t pid = data_->clients[client].pid.load(kRelaxed);
    if (!process_alive(pid, data_->clients[client].start_time.load(kRelaxed))) continue;
    result.clients.push_back(pid);
    alive |= std::uint64_t{1} << client;
  }
  for (const KernelRow& row : data_->kernels) {
    KernelView view;
    view.ticket = row.ticket.load(std::memory_order_acquire);
    const std::uint32_t client = row.client.load(kRelaxed);
    if (view.ticket == 0 || client >= kMaxClients || (alive >> client & 1) == 0) continue;
    view.pid = data_->clients[client].pid.load(kRelaxed);
    view.context = context_of(*data_, row);
    view.urgency = row.urgency.load(kRelaxed);
    view.threads = row.threads.load(kRelaxed);
    view.shared = row.shared.load(kRelaxed);
    view.blocks = row.blocks.load(kRelaxed);
    view.allowed = row.allowed.load(kRelaxed);
    for (std::uint32_t sm = 0; sm < result.sms; ++sm) {
      // Reads freed first: it never exceeds granted, so the difference is never negative, whatever happens between the
      // reads.
      const std::uint32_t freed = row.freed[sm].load(std::memory_order_acquire);
      const std::uint32_t granted = row.granted[sm].load(kRelaxed);
      view.resident.push_back(granted - freed);
      view.finished += freed;
      view.placed += granted;
    }
    if (row.ticket.load(kRelaxed) == view.ticket) result.kernels.push_back(std::move(view));
  }
  std::sort(result.kernels.begin(), result.kernels.end(),
            [](const KernelView& a, const KernelView& b) { return a.ticket < b.ticket; });
  return result;
}

}  // namespace gpuctl::softgpu
