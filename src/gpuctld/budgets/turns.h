// Who is served next: users take turns, and so do the connections of a user. A user with many connections gets no more
// turns than a user with one.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <utility>

namespace gpuctl::daemon {

/// `Item` is what has asked for a turn. One thread.
template <class Item>
class Turns {
 public:
  void add(std::uint32_t uid, Item item) { waiting_[uid].push_back(std::move(item)); }
  bool empty() const { return waiting_.empty(); }

  /// Takes the next item of the next user for whom `may(uid)` holds. False: there is none.
  template <class May>
  bool next(May may, Item& item) {
    auto user = waiting_.upper_bound(last_);
    for (std::size_t i = 0; i < waiting_.size(); ++i, ++user) {
      if (user == waiting_.end()) user = waiting_.begin();
      if (!may(user->first)) continue;
      last_ = user->first;
      item = std::move(user->second.front());
      user->second.pop_front();
      if (user->second.empty()) waiting_.erase(user);
      return true;
    }
    return false;
  }

  void remove(std::uint32_t uid, const Item& item) {
    const auto user = waiting_.find(uid);
    if (user != waiting_.end() && std::erase(user->second, item) > 0 && user->second.empty()) waiting_.erase(user);
  }
  void clear() { waiting_.clear(); }

 private:
  std::map<std::uint32_t, std::deque<Item>> waiting_;
  std::uint32_t last_ = 0;
};

}  // namespace gpuctl::daemon
