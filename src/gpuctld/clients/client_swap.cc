// Where a client's device memory is (ipc/swap.h).
#include <algorithm>
#include <string>
#include <utility>

#include "base/limit_text.h"
#include "gpuctld/clients/client.h"

namespace gpuctl::daemon {

namespace {

using ipc::MemoryIs;

/// A program may say another thing at each look.
constexpr std::uint64_t kTellSwapEveryNs = 1'000'000'000;

/// "the driver refuses it (error 801)"
std::string why_not(const ipc::Swap& swap) {
  const std::string words(ipc::kNotSwappedWords[static_cast<std::size_t>(swap.why)]);
  return swap.error == 0 ? words : words + " (error " + std::to_string(swap.error) + ")";
}

}  // namespace

void Client::want_swapped(bool wanted) {
  if (wanted) waits_for_room = false;
  swap_wanted_ = wanted;
  if (ipc::load(stub_->swap_wanted) != std::uint32_t{wanted}) ipc::store(stub_->swap_wanted, std::uint32_t{wanted});
}

std::uint64_t Client::swapped(std::size_t index) const {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 50;  // whatever the page says
  return swap_.on_host() ? std::min(kMost, ipc::load(stub_->usage[index].memory)) : 0;
}

std::optional<std::string> Client::swap_now() const {
  std::uint64_t bytes = 0;
  for (std::size_t slot = 0; slot < slots_.size(); ++slot) bytes += slots_[slot].device < 0 ? 0 : swapped(slot);
  const std::string exact = size_text(static_cast<std::int64_t>(bytes));
  const std::string amount = std::isdigit(static_cast<unsigned char>(exact.back())) ? exact + " bytes" : exact;
  switch (swap_.memory) {
    case MemoryIs::on_gpu:
      if (!swap_wanted_ || swap_.why == ipc::NotSwapped::no_reason) return std::nullopt;
      return "its memory stays on the GPU: " + why_not(swap_);
    case MemoryIs::leaving:
      return "its memory is leaving the GPU";
    case MemoryIs::on_host:
      return amount + " of its memory are on the host" +
             (waits_for_room ? ", and wait for room on the GPU, which other programs or their limits have" : "");
    case MemoryIs::returning:
      return amount + " of its memory come back to the GPU";
    case MemoryIs::without_room:
      return amount + " of its memory wait on the host: the driver has no room for them on the GPU (error " +
             std::to_string(swap_.error) + ")";
    case MemoryIs::lost:
      return "the driver has lost its memory" + (swap_.error == 0 ? "" : ": " + why_not(swap_)) +
             "; it must start again";
  }
  return std::nullopt;
}

std::optional<Client::SwapNews> Client::swap_news(std::uint64_t now_ns) {
  // On the way nothing is told, and what was told before is still known when the way has led back.
  if (swap_.memory == MemoryIs::leaving || swap_.memory == MemoryIs::returning) return std::nullopt;
  if (swap_told_ns_ != 0 && now_ns < swap_told_ns_ + kTellSwapEveryNs) return std::nullopt;
  const ipc::Swap before = std::exchange(told_swap_, swap_);
  const bool waited = std::exchange(told_waits_, waits_for_room);
  auto news = news_since(before, waited);
  if (news) swap_told_ns_ = now_ns;
  return news;
}

std::optional<Client::SwapNews> Client::news_since(const ipc::Swap& before, bool waited) const {
  if (before == swap_ && waited == waits_for_room) return std::nullopt;
  const auto now = [this] { return swap_now().value_or(""); };
  if (waits_for_room && !waited) return SwapNews{"not-restored", now()};
  switch (swap_.memory) {
    case MemoryIs::on_gpu:
      if (before.on_host()) return SwapNews{"restored", swap_.why == ipc::NotSwapped::by_hand ? why_not(swap_) : ""};
      if (swap_.why != before.why && now() != "") return SwapNews{"not-swapped", now()};
      break;
    case MemoryIs::on_host:
      if (!before.on_host()) return SwapNews{"swapped", now()};
      break;
    case MemoryIs::without_room:
    case MemoryIs::lost:
      if (swap_ != before) return SwapNews{"not-restored", now()};
      break;
    case MemoryIs::leaving:
    case MemoryIs::returning:
      break;
  }
  return std::nullopt;
}

}  // namespace gpuctl::daemon
