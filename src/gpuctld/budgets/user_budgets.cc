#include "gpuctld/budgets/user_budgets.h"

#include <algorithm>
#include <utility>

namespace gpuctl::daemon {

UserBudgets::UserBudgets(std::uint32_t own_uid, Budget user, Budget all)
    : own_uid_(own_uid), user_(user), all_(all), together_(all) {}

bool UserBudgets::connect(std::uint32_t uid, std::uint64_t now_ns) {
  if (exempt(uid)) return true;
  if (all_.connects.burst > 0) together_.connects.charge(1, now_ns);
  Account& account = of(uid);
  if (account.calls.wait(now_ns).count() == 0) together_.calls.charge(1, now_ns);
  account.calls.charge(1, now_ns);
  if (account.connections >= user_.connections || together_.connections >= all_.connections) return false;
  ++account.connections;
  ++together_.connections;
  return true;
}

void UserBudgets::disconnect(std::uint32_t uid) {
  if (exempt(uid)) return;
  --of(uid).connections;
  --together_.connections;
}

std::optional<std::uint32_t> UserBudgets::gives_up_connection_for(std::uint32_t uid) const {
  const auto own = users_.find(uid);
  const std::size_t has = own == users_.end() ? 0 : own->second.connections;
  if (together_.connections < all_.connections || has >= user_.connections) return std::nullopt;
  const auto most = std::ranges::max_element(users_, {}, [](const auto& user) { return user.second.connections; });
  if (most == users_.end() || most->second.connections <= has + 1) return std::nullopt;
  return most->first;
}

/// Whether the user waits for nobody else's debts now. That is paid from one bucket of all such users.
bool UserBudgets::asks_seldom(std::uint32_t uid, std::uint64_t now_ns) const {
  if (user_.kept_time.burst <= 0 || together_.kept_time.wait(now_ns).count() > 0) return false;
  const auto found = users_.find(uid);
  return found == users_.end() || found->second.kept_time.wait(now_ns).count() == 0;
}

std::chrono::nanoseconds UserBudgets::wait(std::uint32_t uid, std::uint64_t now_ns) const {
  if (exempt(uid)) return {};
  const auto found = users_.find(uid);
  return std::max(asks_seldom(uid, now_ns) ? std::chrono::nanoseconds() : together_.wait(now_ns),
                  found != users_.end() ? found->second.wait(now_ns) : std::chrono::nanoseconds());
}

void UserBudgets::charge(std::uint32_t uid, double calls, std::size_t bytes, std::uint64_t now_ns) {
  if (exempt(uid)) return;
  for (Account* account : {&of(uid), &together_}) {
    account->calls.charge(calls, now_ns);
    account->bytes.charge(static_cast<double>(bytes), now_ns);
  }
}

bool UserBudgets::buffer(std::uint32_t uid, std::ptrdiff_t bytes) {
  if (exempt(uid)) return true;
  Account& account = of(uid);
  const auto shared = [&](std::size_t own) { return own - std::min(own, user_.kept_for_each); };
  const std::size_t after = account.buffered + static_cast<std::size_t>(bytes);  // may wrap down
  const std::size_t together = together_.buffered - shared(account.buffered) + shared(after);
  const bool fits = together <= together_.buffered || together <= all_.buffered;
  if (bytes > 0 && (after > user_.buffered || !fits)) return false;
  account.buffered = after;
  together_.buffered = together;
  return true;
}

std::optional<std::uint64_t> UserBudgets::log_line(std::uint32_t uid, std::uint64_t now_ns) {
  if (exempt(uid)) return 0;
  Account& account = of(uid);
  if (account.log_lines.wait(now_ns).count() > 0 || together_.log_lines.wait(now_ns).count() > 0) {
    ++account.lines_left_out;
    return std::nullopt;
  }
  account.log_lines.charge(1, now_ns);
  together_.log_lines.charge(1, now_ns);
  return std::exchange(account.lines_left_out, 0);
}

void UserBudgets::worked(std::uint32_t uid, std::chrono::nanoseconds took, std::uint64_t now_ns) {
  if (exempt(uid)) return;
  const double seconds = std::chrono::duration<double>(took).count();
  if (together_.wait(now_ns).count() > 0 && asks_seldom(uid, now_ns)) together_.kept_time.charge(seconds, now_ns);
  of(uid).time.charge(seconds, now_ns);
  of(uid).kept_time.charge(seconds, now_ns);
  together_.time.charge(seconds, now_ns);
}

void UserBudgets::forget_idle(std::uint64_t now_ns) {
  std::erase_if(users_, [&](const auto& user) {
    const Account& account = user.second;
    return account.connections == 0 && account.calls.full(now_ns) && account.bytes.full(now_ns) &&
           account.log_lines.full(now_ns) && account.time.full(now_ns) && account.kept_time.full(now_ns);
  });
}

}  // namespace gpuctl::daemon
