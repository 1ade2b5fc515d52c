#include "softgpu/table/placement.h"

#include <algorithm>
#include <array>
#include <bit>
#include <span>

#include "softgpu/table/device_limits.h"

namespace gpuctl::softgpu {
namespace {

template <class T>
void add(std::atomic<T>& field, T amount) {
  // A plain load and store on purpose: the mutex makes the caller the only writer.
  field.store(field.load(kRelaxed) + amount, kRelaxed);
}

std::span<KernelRow> rows_of(TableData& table) {
  return {table.kernels, table.rows.load(kRelaxed)};
}

bool waiting(const KernelRow& kernel, std::uint32_t sms) {
  return kernel.ticket.load(kRelaxed) != 0 && placed_blocks(kernel, sms) < kernel.blocks.load(kRelaxed);
}

/// Whether `a` goes before `b`.
bool goes_before(const KernelRow& a, const KernelRow& b) {
  const std::int32_t left = a.urgency.load(kRelaxed);
  const std::int32_t right = b.urgency.load(kRelaxed);
  return left != right ? left > right : a.ticket.load(kRelaxed) < b.ticket.load(kRelaxed);
}

/// The SMs on which a client with ClientRow::most_sms has blocks, and whether it may come to others.
class Reach {
 public:
  Reach(TableData& table, std::uint32_t client, std::uint32_t sms)
      : most_(table.clients[client].most_sms.load(kRelaxed)) {
    if (most_ == 0) return;
    for (const KernelRow& kernel : rows_of(table)) {
      if (kernel.ticket.load(kRelaxed) == 0 || kernel.client.load(kRelaxed) != client) continue;
      for (std::uint32_t sm = 0; sm < sms; ++sm)
        if (kernel.granted[sm].load(kRelaxed) != kernel.freed[sm].load(kRelaxed)) note(sm);
    }
  }

  void note(std::uint32_t sm) { held_ |= std::uint64_t{1} << sm; }
  /// It is on as many SMs as it may be.
  bool full() const { return most_ != 0 && static_cast<std::uint32_t>(std::popcount(held_)) >= most_; }
  std::uint64_t sms() const { return full() ? held_ : kAnySm; }

 private:
  std::uint32_t most_;
  std::uint64_t held_ = 0;
};

bool fits(const SmUse& use, const KernelRow& kernel) {
  return use.blocks.load(kRelaxed) < kSmBlocks &&
         use.threads.load(kRelaxed) + kernel.threads.load(kRelaxed) <= kSmThreads &&
         use.shared.load(kRelaxed) + kernel.shared.load(kRelaxed) <= kSmShared;
}

/// The least occupied SM of `allowed` that can take a block of the kernel, or kMaxSms. So a grid first spreads over all
/// SMs.
std::uint32_t choose_sm(const TableData& table, const KernelRow& kernel, std::uint64_t allowed, std::uint32_t sms) {
  std::uint32_t chosen = kMaxSms;
  for (std::uint32_t sm = 0; sm < sms; ++sm) {
    if ((allowed >> sm & 1) == 0 || !fits(table.use[sm], kernel)) continue;
    if (chosen == kMaxSms || table.use[sm].threads.load(kRelaxed) < table.use[chosen].threads.load(kRelaxed)) {
      chosen = sm;
    }
  }
  return chosen;
}

void trim_rows(TableData& table) {
  std::uint32_t rows = table.rows.load(kRelaxed);
  while (rows > 0 && table.kernels[rows - 1].ticket.load(kRelaxed) == 0) --rows;
  table.rows.store(rows, kRelaxed);
}

bool has_turn(const TableData& table, const KernelRow& kernel) {
  return context_of(table, kernel) == table.turn.load(kRelaxed);
}

void occupy(SmUse& use, const KernelRow& kernel, std::uint32_t blocks) {
  add(use.blocks, blocks);
  add(use.threads, blocks * kernel.threads.load(kRelaxed));
  add(use.shared, blocks * kernel.shared.load(kRelaxed));
}

/// Places as many blocks of the kernel as fit. Returns whether it placed any.
bool place_kernel(TableData& table, KernelRow& kernel, Reach& reach, std::uint32_t sms) {
  const std::uint64_t left = kernel.blocks.load(kRelaxed) - placed_blocks(kernel, sms);
  std::uint64_t placed = 0;
  for (; placed < left; ++placed) {
    const std::uint32_t sm = choose_sm(table, kernel, kernel.allowed.load(kRelaxed) & reach.sms(), sms);
    if (sm == kMaxSms) break;
    reach.note(sm);
    add(kernel.granted[sm], 1U);
    occupy(table.use[sm], kernel, 1);
  }
  return placed > 0;
}

}  // namespace

std::uint32_t context_of(const TableData& table, const KernelRow& kernel) {
  const std::uint32_t client = kernel.client.load(kRelaxed);
  return table.clients[client].context.load(kRelaxed);
}

bool give_turn(TableData& table, std::uint64_t now_ns) {
  std::array<bool, kMaxContexts> works{};
  for (const KernelRow& kernel : rows_of(table))
    if (kernel.ticket.load(kRelaxed) != 0) works[context_of(table, kernel)] = true;
  const std::uint32_t turn = table.turn.load(kRelaxed);
  const std::uint32_t us = table.turn_us[turn].load(kRelaxed);
  const std::uint64_t lasts = us == 0 ? kUsualTurnNs : std::max(std::uint64_t{us} * 1000, kLeastTurnNs);
  if (works[turn] && now_ns < table.turn_began_ns.load(kRelaxed) + lasts) return false;
  std::uint32_t next = turn;
  do next = (next + 1) % kMaxContexts;
  while (next != turn && !works[next]);
  if (next == turn) return false;
  table.turn.store(next, kRelaxed);
  table.turn_began_ns.store(now_ns, kRelaxed);
  add(table.turns[next], std::uint64_t{1});
  recount(table);
  return true;
}

std::uint64_t placed_blocks(const KernelRow& kernel, std::uint32_t sms) {
  std::uint64_t placed = 0;
  for (std::uint32_t sm = 0; sm < sms; ++sm) placed += kernel.granted[sm].load(kRelaxed);
  return placed;
}

std::uint64_t place_blocks(TableData& table) {
  const std::uint32_t sms = table.sms.load(kRelaxed);
  std::array<KernelRow*, kMaxKernels> queue;
  auto end = queue.begin();
  for (KernelRow& kernel : rows_of(table)) {
    if (has_turn(table, kernel) && waiting(kernel, sms)) *end++ = &kernel;
  }
  std::sort(queue.begin(), end, [](const KernelRow* a, const KernelRow* b) { return goes_before(*a, *b); });
  std::uint64_t clients = 0;
  std::uint64_t awaited = 0;                        // SMs that a kernel further ahead waits for
  std::array<std::uint64_t, kMaxClients> by_own{};  // and those for which it holds up kernels of its client alone
  for (auto next = queue.begin(); next != end && awaited != kAnySm; ++next) {
    KernelRow& kernel = **next;
    const std::uint64_t allowed = kernel.allowed.load(kRelaxed);
    const std::uint32_t client = kernel.client.load(kRelaxed);
    Reach reach(table, client, sms);
    if ((allowed & (awaited | by_own[client])) == 0 && place_kernel(table, kernel, reach, sms))
      clients |= std::uint64_t{1} << client;
    if (waiting(kernel, sms)) (reach.full() ? by_own[client] : awaited) |= allowed;
  }
  return clients;
}

void free_block(TableData& table, KernelRow& kernel, std::uint32_t sm) {
  add(kernel.freed[sm], 1U);
  if (!has_turn(table, kernel)) return;
  SmUse& use = table.use[sm];
  use.blocks.store(use.blocks.load(kRelaxed) - 1, kRelaxed);
  use.threads.store(use.threads.load(kRelaxed) - kernel.threads.load(kRelaxed), kRelaxed);
  use.shared.store(use.shared.load(kRelaxed) - kernel.shared.load(kRelaxed), kRelaxed);
}

KernelRow* find_free_row(TableData& table) {
  for (std::uint32_t index = 0; index < kMaxKernels; ++index) {
    if (table.kernels[index].ticket.load(kRelaxed) != 0) continue;
    if (index >= table.rows.load(kRelaxed)) table.rows.store(index + 1, kRelaxed);
    return &table.kernels[index];
  }
  return nullptr;
}

void remove_kernel(TableData& table, KernelRow& kernel) {
  const std::uint32_t sms = table.sms.load(kRelaxed);
  bool resident = false;
  for (std::uint32_t sm = 0; sm < sms; ++sm) {
    resident = resident || kernel.granted[sm].load(kRelaxed) != kernel.freed[sm].load(kRelaxed);
  }
  kernel.ticket.store(0, kRelaxed);
  if (resident && has_turn(table, kernel)) {
    recount(table);
  } else {
    trim_rows(table);
  }
}

void recount(TableData& table) {
  const std::uint32_t sms = table.sms.load(kRelaxed);
  table.rows.store(kMaxKernels, kRelaxed);
  trim_rows(table);
  for (std::uint32_t sm = 0; sm < sms; ++sm) {
    std::uint32_t threads = 0;
    std::uint32_t blocks = 0;
    std::uint32_t shared = 0;
    for (const KernelRow& kernel : table.kernels) {
      if (kernel.ticket.load(kRelaxed) == 0 || !has_turn(table, kernel)) continue;
      const std::uint32_t resident = kernel.granted[sm].load(kRelaxed) - kernel.freed[sm].load(kRelaxed);
      blocks += resident;
      threads += resident * kernel.threads.load(kRelaxed);
      shared += resident * kernel.shared.load(kRelaxed);
    }
    table.use[sm].blocks.store(blocks, kRelaxed);
    table.use[sm].threads.store(threads, kRelaxed);
    table.use[sm].shared.store(shared, kRelaxed);
  }
}

}  // namespace gpuctl::softgpu
