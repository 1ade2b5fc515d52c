#include "gpuctld/board.h"

#include <algorithm>
#include <array>

namespace gpuctl::daemon {

namespace {

/// A random number of the SMs of `all`, and random ones.
SmSet random_subset(const SmSet& all, std::mt19937_64& random) {
  std::array<std::uint32_t, kMaxSms> sms;
  std::uint32_t size = 0;
  for (std::uint32_t sm = 0; sm < kMaxSms; ++sm)
    if (all.contains(sm)) sms[size++] = sm;
  const auto number = [&](std::uint32_t least, std::uint32_t most) {
    return std::uniform_int_distribution<std::uint32_t>(least, most)(random);
  };
  SmSet subset;
  const std::uint32_t count = number(0, size);
  for (std::uint32_t i = 0; i < count; ++i) {
    std::swap(sms[i], sms[number(i, size - 1)]);
    subset.insert(sms[i]);
  }
  return subset;
}

}  // namespace

void Board::renew(const std::vector<Member>& members, std::span<const std::int32_t> node_was) {
  std::vector<std::int32_t> client_was(members.size(), -1);
  std::size_t old = 0;
  for (std::size_t i = 0; i < members.size(); ++i) {
    while (old < members_.size() && members_[old] != members[i]) ++old;
    if (old < members_.size()) client_was[i] = static_cast<std::int32_t>(old);
  }
  placement_.carry_over(node_was, client_was);
  members_ = members;
  inputs_.resize(members_.size());
  next_.resize(members_.size());
  leaving_.resize(members_.size());
}

void Board::decide(sched::Allocator& allocator, std::span<const sched::NodeInput> nodes, std::uint64_t turn) {
  for (std::size_t i = 0; i < members_.size(); ++i)
    inputs_[i] = {members_[i].client->node, sched::CapSM{slot(members_[i]).demand}};
  allocator.decide(nodes, inputs_, placement_.capacity(), turn, decision_);
  placement_.place(nodes, inputs_, decision_);
  starving_ = false;
  waiting_ = true;  // for write()
  for (std::size_t i = 0; i < members_.size(); ++i) {
    Client::Slot& s = slot(members_[i]);
    s.granted = decision_.clients[i].grant;
    s.decided = placement_.own(i) | placement_.at_rest(inputs_[i].node);
    starving_ |= s.granted.count == 0 && s.demand != 0;
  }
}

void Board::write(std::chrono::nanoseconds deadline, std::uint64_t now_ns) {
  if (waiting_)
    hand_over(deadline, now_ns);
  else
    for (std::size_t i = 0; i < members_.size(); ++i) next_[i] = slot(members_[i]).written;
  write_next(now_ns);
}

/// How far the decision can be written now.
void Board::hand_over(std::chrono::nanoseconds deadline, std::uint64_t now_ns) {
  SmSet left_by_one, left_by_more;
  for (std::size_t i = 0; i < members_.size(); ++i) {
    const auto& [client, index] = members_[i];
    const Client::Slot& s = client->slots()[index];
    leaving_[i] = {};
    if (s.busy() && !client->overdue(index, deadline, now_ns))
      leaving_[i] = (s.written | s.held.sms()) - (s.written & s.decided);
    left_by_more |= left_by_one & leaving_[i];
    left_by_one |= leaving_[i];
  }
  waiting_ = false;
  for (std::size_t i = 0; i < members_.size(); ++i) {
    const Client::Slot& s = slot(members_[i]);
    const SmSet held_by_others = (left_by_one - leaving_[i]) | left_by_more;
    next_[i] = (s.decided & s.written) | (s.decided - held_by_others);
    waiting_ |= next_[i] != s.decided;
  }
}

/// Those that lose SMs first: who waits for the SMs waits for them, not for the futexes of those who gain.
void Board::write_next(std::uint64_t now_ns) {
  SmSet used;
  for (std::size_t i = 0; i < members_.size(); ++i)
    if (const Client::Slot& s = slot(members_[i]); s.busy()) used |= next_[i] | s.written | s.held.sms();
  const SmSet unused = placement_.device() - used;
  for (const bool losers : {true, false}) {
    for (std::size_t i = 0; i < members_.size(); ++i) {
      const auto& [client, index] = members_[i];
      const Client::Slot& s = client->slots()[index];
      if ((s.written - next_[i]).empty() == losers) continue;
      const std::uint32_t idle = (unused - next_[i]).size();
      if (next_[i] != s.written || s.epoch == 0)
        client->write_grant(index, next_[i], idle, now_ns);
      else if (idle != s.idle)
        client->write_idle(index, idle);
    }
  }
}

void Board::storm(std::mt19937_64& random, std::uint64_t now_ns) {
  waiting_ = false;
  for (std::size_t i = 0; i < members_.size(); ++i) next_[i] = random_subset(slot(members_[i]).decided, random);
  write_next(now_ns);
}

}  // namespace gpuctl::daemon
