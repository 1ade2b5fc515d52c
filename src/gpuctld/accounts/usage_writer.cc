#include "gpuctld/accounts/usage_writer.h"

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "sched/slices.h"

namespace gpuctl::daemon {

namespace {

constexpr std::int64_t kTidyEveryS = 3600;
/// The whole file is read for it.
constexpr std::int64_t kMakeRoomEveryS = 600;

}  // namespace

void Unwritten::add(const Accounts& accounts, std::int64_t time_s) {
  const std::int64_t span = UsageStore::kSpans.front().seconds;
  for (const auto& [key, used] : accounts) {
    const bool full = size_ >= kMost;
    Accounts& then = full ? by_time_.rbegin()->second : by_time_[time_s / span * span];
    const AccountKey others{UsageStore::kOthers, key.uid, key.gpu};
    const std::size_t before = then.size();
    then[full && !then.contains(key) ? others : key] += used;
    size_ += then.size() - before;
  }
}

void Unwritten::add(const Unwritten& more) {
  for (const auto& [time_s, accounts] : more.by_time_) add(accounts, time_s);
}

void Unwritten::remove_first() {
  size_ -= by_time_.begin()->second.size();
  by_time_.erase(by_time_.begin());
}

Accounts Unwritten::sums(const UsageQuestion& question) const {
  Accounts sums;
  for (const auto& [start, accounts] : by_time_) {
    if (question.since && start + UsageStore::kSpans.front().seconds <= *question.since) continue;
    if (question.until && start >= *question.until) continue;
    for (const auto& [key, used] : accounts)
      if ((!question.slice || sched::in_or_below(key.slice, *question.slice)) &&
          (!question.uid || key.uid == *question.uid) && (!question.gpu || key.gpu == *question.gpu))
        sums[key] += used;
  }
  return sums;
}

void UsageWriter::add(const Unwritten& more, std::int64_t time_s) {
  unwritten_.add(more);
  time_s_ = time_s;
  write();
  if (std::abs(time_s - tidied_s_) >= kTidyEveryS) tidy(time_s);  // clocks are set back too
}

Result<Accounts> UsageWriter::sums(const UsageQuestion& question) {
  write();
  const Accounts more = unwritten_.sums(question);
  auto sums = on_store([&](UsageStore& store) { return store.sums(question, UsageStore::kMostSums, more); });
  if (!sums) return fail(sums.error().message);
  return *sums;
}

void UsageWriter::write() {
  while (!unwritten_.empty()) {
    if (const auto written = write_first(); !written) return say(written.error().message);
    unwritten_.remove_first();
  }
  if (!std::exchange(problem_, "").empty()) tell_("what is used is kept again");
}

/// In a file that is full less is left apart of each user, and still less, until there is room.
StoreResult<void> UsageWriter::write_first() {
  const auto& first = unwritten_.first();
  const auto add = [&] { return on_store([&](UsageStore& store) { return store.add(first.second, first.first); }); };
  auto written = add();
  if (written || !written.error().full || !store_ || !store_->large()) return written;
  if (std::abs(time_s_ - made_room_s_) < kMakeRoomEveryS) return written;
  made_room_s_ = time_s_;
  constexpr std::int64_t kFewer = 8;
  for (std::int64_t most = UsageStore::kMostOfUser / kFewer; !written && written.error().full && most > 0;
       most /= kFewer) {
    const auto tidied = on_store([&](UsageStore& store) { return store.tidy(time_s_, most); });
    if (!tidied) return tidied;
    written = add();
    if (written)
      tell_(file_ + " was full: of users with more than " + std::to_string(most) +
            " entries the oldest count together now");
  }
  return written;
}

void UsageWriter::tidy(std::int64_t time_s) {
  tidied_s_ = time_s;
  const auto tidied = on_store([&](UsageStore& store) { return store.tidy(time_s); });
  if (!tidied && problem_.empty()) tell_("old entries of " + file_ + " stay as they are: " + tidied.error().message);
}

/// One line for one trouble, however long it lasts.
void UsageWriter::say(const std::string& message) {
  if (problem_.empty()) tell_("what is used is not kept for now: " + message);
  problem_ = message;
}

/// A file that cannot be used is put aside, once in a call.
template <class Body>
auto UsageWriter::on_store(Body body) -> decltype(body(std::declval<UsageStore&>())) {
  for (bool again = false;; again = true) {
    StoreError error;
    if (!store_) {
      auto opened = UsageStore::open(file_, most_bytes_);
      if (opened)
        store_.emplace(std::move(*opened));
      else
        error = opened.error();
    }
    if (store_) {
      auto done = body(*store_);
      if (done) return done;
      error = done.error();
    }
    if (!error.damaged || again) return error;
    store_.reset();
    put_aside(error.message);
  }
}

void UsageWriter::put_aside(const std::string& message) {
  const std::string aside = file_ + ".damaged";
  if (std::rename(file_.c_str(), aside.c_str()) != 0) return;
  for (const char* beside : {"-wal", "-shm"}) std::remove((file_ + beside).c_str());
  tell_(message + "; it is kept as " + aside + ", and a new one is begun");
}

}  // namespace gpuctl::daemon
