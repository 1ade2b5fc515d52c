// The daemon dies again and again, at any moment, also between a record and what it promises then, while the record
// cannot be written now and then. What its programs use together is never more than there is.
#include <gtest/gtest.h>
#include <malloc.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "base/random.h"
#include "gpuctld/restart/holdings_record.h"
#include "gpuctld/restart/returning.h"
#include "gpuctld/testing/fake_program.h"

namespace gpuctl::daemon::restarts_test {

constexpr std::uint64_t kMs = 1'000'000, kMiB = 1 << 20, kLimit = 100 * kMiB, kLimitBelow = 60 * kMiB;
constexpr std::uint32_t kSms = 16;
constexpr int kRestarts = 10'000;

/// The daemon is killed here.
struct Death {};

/// What is on the disk.
struct Disk {
  std::string text;
  bool full = false;
  /// How many more records are written before the daemon is killed, just before or just after the last of them.
  std::optional<std::uint64_t> deadly;
  bool after = false;

  Result<void> store(const std::string& fresh) {
    const bool dies = deadly && (*deadly)-- == 0;
    if (dies && !after) throw Death();
    if (full) return fail("no space left");
    text = fresh;
    if (dies) throw Death();
    return {};
  }
};

/// In each slice with a reserve that is kept there is one program, as several of them may start in it at once.
sched::SliceTree make_tree(Random& random) {
  sched::SliceTree tree(sched::CapSM{kSms}, 0);
  const auto some = [&](std::int64_t least, std::int64_t most) {
    return least + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(most - least + 1)));
  };
  EXPECT_TRUE(tree.create("strict", {.reserve = some(0, 3), .reserve_mode = "strict"}, kRoot));
  EXPECT_TRUE(tree.create("active", {.reserve = some(0, 4), .reserve_hold_ms = some(1, 20)}, kRoot));
  EXPECT_TRUE(tree.create("limited", {.memory_max = kLimit}, kRoot));
  EXPECT_TRUE(tree.create("limited/below", {.max = some(1, 16), .memory_max = kLimitBelow}, kRoot));
  EXPECT_TRUE(tree.create("rest", {.max = some(0, 16), .weight = some(1, 300)}, kRoot));
  return tree;
}

/// A process, and the program in it.
struct Program {
  explicit Program(std::string where) : slice(std::move(where)) {
    pid = ::fork();
    if (pid == 0)
      for (;;) ::pause();
    process = {pid, start_of(pid), ::geteuid()};
  }
  Program(Program&& other) noexcept = default;
  Program& operator=(Program&& other) noexcept = default;
  void end() const {
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }

  /// SMs that it may be using: what it has not left yet, and what its page allows it.
  std::uint32_t may_use() const { return page.get() == nullptr ? 0 : std::max(uses, granted()); }
  std::uint32_t granted() const { return ipc::load(page->grant[0].polled.capsm); }
  void obey() {
    uses = std::min(demand, granted());
    ipc::store(page->usage[0].demand, demand);
    ipc::store(page->usage[0].memory, memory);
    ipc::store(page->usage[0].applied_epoch, ipc::load(page->grant[0].epoch));
  }

  std::string slice;
  pid_t pid = 0;
  ProcessIdentity process;
  ipc::StubMap page;         ///< of the daemon that it was attached to last
  Client* client = nullptr;  ///< null: it is not attached to the daemon that lives
  std::uint32_t demand = 0, uses = 0;
  std::uint64_t memory = 0;
};

class Daemon {
 public:
  Daemon(sched::SliceTree tree, Disk& disk, std::uint64_t now_ns)
      : scheduler({{0, "Test GPU", "GPU-0", true, kSms, 1u << 30}}, std::move(tree), options()),
        returning(
            context_, scheduler, [](const std::string&) {}, [] {}),
        record(
            scheduler, [&disk](const std::string& text) { return disk.store(text); }, [](const std::string&) {}) {
    if (!disk.text.empty()) returning.expect(understand_holdings(disk.text).value(), now_ns);
    record.begin(now_ns);
  }
  ~Daemon() { returning.stop(); }

 private:
  static DaemonOptions options() {
    constexpr std::chrono::hours kNever{1};
    return {.evict_deadline = kNever, .longest_block_task = kNever, .always_preemptible = true, .lease = kNever};
  }
  boost::asio::io_context context_{1};  ///< never run: its timers go by another clock

 public:
  Scheduler scheduler;
  Returning returning;
  HoldingsRecord record;
};

class Restarts : public testing::Test {
 protected:
  Restarts() {
    for (const char* slice : {"strict", "active", "limited", "limited", "limited/below", "rest", "rest"})
      programs_.emplace_back(slice);
  }
  ~Restarts() override {
    daemon_.reset();
    for (const Program& program : programs_) program.end();
  }

  void attach(Program& program) {
    Client client = std::move(
        Client::create({program.pid, program.process.uid, "program", program.process.start}, program.slice, {0})
            .value());
    program.client = &daemon_->returning.attach(std::move(client), daemon_->scheduler.time_sliced(), now_ns_);
    program.page = ipc::StubMap::map(program.client->memfd()).value();
  }

  void ask_for_memory(Program& program) {
    const std::uint64_t bytes = random_.below(kLimit / kMiB) * kMiB;
    if (daemon_->scheduler.hold_memory(*program.client, 0, bytes, now_ns_).granted) program.memory = bytes;
  }

  /// Another program comes into the slice.
  void replace(Program& program) {
    program.end();
    Client* const client = std::exchange(program.client, nullptr);
    program = Program(program.slice);
    if (client != nullptr) daemon_->scheduler.remove(*client, now_ns_);
    daemon_->record.note_gone();
  }

  void step() {
    now_ns_ += kMs;
    Program& program = programs_[random_.below(programs_.size())];
    const std::uint64_t what = random_.below(100);
    if (what == 0) return replace(program);
    if (what == 1) return daemon_->scheduler.set_tree(make_tree(random_), now_ns_);
    if (what < 5) disk_.full = !disk_.full;
    if (program.client == nullptr) {
      if (what < 30) attach(program);
    } else if (what < 30) {
      program.demand = random_.below(3) == 0 ? 0 : static_cast<std::uint32_t>(random_.below(kSms + 1));
      program.obey();
    } else if (what < 70) {
      program.obey();
    } else if (what < 80) {
      ask_for_memory(program);
    }
    daemon_->scheduler.update(now_ns_);
    daemon_->record.tidy(now_ns_, what > 95);
  }

  std::string described() const {
    std::string text;
    for (const Program& program : programs_)
      text += program.slice + (program.client == nullptr ? " away" : "") + ": uses " + std::to_string(program.uses) +
              ", granted " + std::to_string(program.page.get() == nullptr ? 0 : program.granted()) + ", demand " +
              std::to_string(program.demand) + "\n";
    return text;
  }

  void check() const {
    std::uint32_t sms = 0;
    std::uint64_t memory = 0, below = 0;
    for (const Program& program : programs_) {
      sms += program.may_use();
      memory += sched::in_or_below(program.slice, "limited") ? program.memory : 0;
      below += program.slice == "limited/below" ? program.memory : 0;
    }
    ASSERT_LE(sms, kSms) << described();
    ASSERT_LE(memory, kLimit);
    ASSERT_LE(below, kLimitBelow);
  }

  Random random_{52};
  std::uint64_t now_ns_ = kMs;
  Disk disk_;
  std::vector<Program> programs_;
  std::unique_ptr<Daemon> daemon_;
};

TEST_F(Restarts, NeverMoreThanThereIs) {
  ::malloc_trim(0);  // what tests before it had: each of the thousands of processes would copy its page tables
  std::uint64_t most_sms = 0;
  for (int i = 0; i < kRestarts; ++i) {
    for (Program& program : programs_) program.client = nullptr;
    daemon_.reset();
    disk_.deadly.reset();
    if (random_.below(3) == 0) disk_.deadly = random_.below(12), disk_.after = random_.below(2) == 0;
    const std::uint64_t steps = 1 + random_.below(60);
    try {
      daemon_ = std::make_unique<Daemon>(make_tree(random_), disk_, now_ns_);
      for (std::uint64_t step = 0; step < steps; ++step) {
        this->step();
        check();
        if (HasFatalFailure()) FAIL() << "after " << i << " restarts and " << step << " steps";
      }
    } catch (const Death&) {
    }
    check();
    if (HasFatalFailure()) FAIL() << "after " << i << " restarts";
    std::uint64_t sms = 0;
    for (const Program& program : programs_) sms += program.uses;
    most_sms = std::max(most_sms, sms);
  }
  EXPECT_EQ(most_sms, kSms) << "there was enough to do";
}

}  // namespace gpuctl::daemon::restarts_test
