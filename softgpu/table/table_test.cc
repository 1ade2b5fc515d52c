#include "softgpu/table/table.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>

#include "softgpu/host/process.h"

namespace gpuctl::softgpu {
namespace {

class TableTest : public testing::Test {
 protected:
  TableTest() : path_(testing::TempDir() + "softgpu-table-test-" + std::to_string(getpid())) {
    std::remove(path_.c_str());
  }
  ~TableTest() override { std::remove(path_.c_str()); }

  std::unique_ptr<Table> open(std::uint32_t sms = 4) {
    Result<std::unique_ptr<Table>> table = Table::open(path_, sms);
    EXPECT_TRUE(table.has_value()) << (table.has_error() ? table.error().message : "");
    return table.has_value() ? std::move(*table) : nullptr;
  }

  /// Runs `body` in a child. The child ends by SIGKILL inside it, or exits with the number that it returns.
  template <class Body>
  static int in_child(Body body) {
    const pid_t child = fork();
    if (child == 0) _exit(body());
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    return status;
  }

  static KernelRequest request(std::uint64_t blocks, std::uint32_t threads) {
    KernelRequest result;
    result.blocks = blocks;
    result.threads = threads;
    result.shared = 1024;
    return result;
  }

  std::string path_;
};

TEST_F(TableTest, FileIsPrivateAndKeepsItsSms) {
  const auto first = open(4);
  const auto second = open(6);
  EXPECT_EQ(second->sms(), 4U);
  EXPECT_NE(first->client(), second->client());
  struct stat status {};
  ASSERT_EQ(stat(path_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600U);
}

TEST_F(TableTest, SmsAreChosenAnewWhenNobodyIsLeft) {
  open(4).reset();
  EXPECT_EQ(open(6)->sms(), 6U);
}

TEST_F(TableTest, AClientMayHaveAPartOfTheSmsInPairs) {
  for (const auto& [percentage, sms] : {std::pair(100.0, 12u), std::pair(99.0, 10u), std::pair(75.0, 8u),
                                        std::pair(54.16, 6u), std::pair(17.0, 2u), std::pair(1.0, 2u)}) {
    const Result<std::unique_ptr<Table>> table = Table::open(path_, 12, percentage);
    ASSERT_TRUE(table.has_value());
    EXPECT_EQ((*table)->own_sms(), sms) << percentage;
    EXPECT_EQ((*table)->sms(), 12U);
  }
  EXPECT_EQ(open(12)->own_sms(), 12U);  // the row is used again
}

TEST_F(TableTest, ClientsShareHardwareQueues) {
  const auto takes = [](Table& table, std::uint32_t queues) {
    const Table::Lock lock(table);
    return table.take_queues(queues, 6);
  };
  auto first = open(4), second = open(4), third = open(4);
  EXPECT_TRUE(takes(*first, 2));
  EXPECT_FALSE(takes(*second, 5));
  EXPECT_TRUE(takes(*second, 4));
  EXPECT_FALSE(takes(*third, 1));
  second.reset();
  EXPECT_TRUE(takes(*third, 4));
  EXPECT_FALSE(takes(*open(4), 1));
}

TEST_F(TableTest, RefusesAFileThatIsNoTable) {
  std::ofstream(path_) << "something else";
  const auto table = Table::open(path_, 4);
  ASSERT_TRUE(table.has_error());
  EXPECT_NE(table.error().message.find(path_), std::string::npos);
  EXPECT_TRUE(TableReader::open(path_).has_error());
}

TEST_F(TableTest, SnapshotShowsWhoHoldsWhat) {
  const auto table = open(4);
  KernelRow* row = nullptr;
  {
    const Table::Lock lock(*table);
    row = table->enqueue(request(10, 1024));
    EXPECT_TRUE(table->place());
    table->free_block(*row, 2);
  }
  const auto reader = TableReader::open(path_);
  ASSERT_TRUE(reader.has_value());
  const Snapshot snapshot = (*reader)->snapshot();
  EXPECT_EQ(snapshot.sms, 4U);
  ASSERT_EQ(snapshot.clients.size(), 1U);
  EXPECT_EQ(snapshot.clients[0], static_cast<std::uint32_t>(getpid()));
  ASSERT_EQ(snapshot.kernels.size(), 1U);
  const KernelView& kernel = snapshot.kernels[0];
  EXPECT_EQ(kernel.blocks, 10U);
  EXPECT_EQ(kernel.placed, 8U);
  EXPECT_EQ(kernel.finished, 1U);
  EXPECT_EQ(kernel.resident, (std::vector<std::uint32_t>{2, 2, 1, 2}));
}

TEST_F(TableTest, BlocksPlacedForAnotherClientWakeIt) {
  const auto first = open(1);
  const auto second = open(1);
  KernelRow* head = nullptr;
  {
    const Table::Lock lock(*first);
    head = first->enqueue(request(2, 1024));
    first->place();
    second->enqueue(request(1, 1024));
    EXPECT_FALSE(second->place());
  }
  const std::uint32_t seen = second->wake_count();
  {
    const Table::Lock lock(*first);
    first->free_block(*head, 0);
    EXPECT_FALSE(first->place());
  }
  EXPECT_NE(second->wake_count(), seen);
  second->wait(seen, std::chrono::hours(1));  // returns at once
}

/// It slept if all its blocks had an SM. Now they wait, and it must watch the end of the other's turn.
TEST_F(TableTest, WhoGivesTheTurnAwayIsWokenToo) {
  const auto first = open(1);
  const auto second = std::move(*Table::open(path_, 1, 100, {.apart = true}));
  const Table::Lock lock(*first);
  first->enqueue(request(1, 1024));
  first->place();
  second->enqueue(request(1, 1024));
  do second->place();
  while (!first->has_turn());
  std::uint32_t seen = 0;
  do {
    seen = first->wake_count();
    first->place();
  } while (first->has_turn());
  EXPECT_NE(first->wake_count(), seen);
}

TEST_F(TableTest, TheMostUrgentClientIsWoken) {
  const auto first = open(1);
  const auto second = open(1);
  const auto third = open(1);
  KernelRow* head = nullptr;
  {
    const Table::Lock lock(*first);
    head = first->enqueue(request(4, 1024));
    first->place();
    second->enqueue(request(1, 1024));
    KernelRequest urgent = request(1, 1024);
    urgent.urgency = 1;
    third->enqueue(urgent);
    EXPECT_FALSE(third->place());
  }
  const std::uint32_t seen = third->wake_count();
  const std::uint32_t others = second->wake_count();
  const Table::Lock lock(*first);
  first->free_block(*head, 0);
  EXPECT_FALSE(first->place());
  EXPECT_NE(third->wake_count(), seen);
  EXPECT_EQ(second->wake_count(), others);
}

TEST_F(TableTest, ADeadClientsBlocksAreSweptAway) {
  const auto table = open(1);
  const int status = in_child([&] {
    const auto mine = Table::open(path_, 1);
    const Table::Lock lock(**mine);
    (*mine)->enqueue(request(5, 1024));
    (*mine)->place();
    kill(getpid(), SIGKILL);  // inside the lock
    return 0;
  });
  EXPECT_TRUE(WIFSIGNALED(status));
  const Table::Lock lock(*table);  // inherits the mutex of a dead holder
  KernelRow* mine = table->enqueue(request(2, 1024));
  EXPECT_FALSE(table->place());
  EXPECT_TRUE(table->sweep_dead());
  EXPECT_TRUE(table->place());
  EXPECT_EQ(mine->granted[0].load(), 2U);
}

TEST_F(TableTest, AReaderSeesWhoHoldsTheMutex) {
  const auto table = open(1);
  const auto reader = TableReader::open(path_);
  ASSERT_TRUE(reader.has_value());
  EXPECT_EQ((*reader)->holder(), 0U);
  {
    const Table::Lock lock(*table);
    EXPECT_EQ((*reader)->holder(), static_cast<std::uint32_t>(gettid()));
  }
  EXPECT_EQ((*reader)->holder(), 0U);
}

TEST_F(TableTest, ALivingClientIsNotSwept) {
  const auto first = open(1);
  const auto second = open(1);
  const Table::Lock lock(*first);
  EXPECT_FALSE(first->sweep_dead());
}

TEST(Process, WhoHasNoDescriptorLeftTakesNobodyForDead) {
  const auto self = static_cast<std::uint32_t>(getpid());
  const std::uint64_t start = process_start_time(self);
  const pid_t child = fork();
  if (child == 0) {
    const rlimit none{0, 0};
    _exit(setrlimit(RLIMIT_NOFILE, &none) == 0 && process_alive(self, start) ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(Process, AliveMeansRunningAndTheSame) {
  const auto self = static_cast<std::uint32_t>(getpid());
  const std::uint64_t start = process_start_time(self);
  EXPECT_TRUE(process_alive(self, start));
  EXPECT_FALSE(process_alive(self, start + 1));
  EXPECT_FALSE(process_alive(0, 0));

  const pid_t child = fork();
  if (child == 0) _exit(0);
  siginfo_t info;
  waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT);  // a zombie now
  EXPECT_EQ(process_start_time(static_cast<std::uint32_t>(child)), 0U);
  waitpid(child, nullptr, 0);
}

}  // namespace
}  // namespace gpuctl::softgpu
