#include "ipc/stub_map.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace gpuctl::ipc {
namespace {

using namespace std::chrono_literals;

TEST(StubMap, BothSidesSeeTheSameWords) {
  Result<NewStub> made = NewStub::create(2, 4711);
  ASSERT_TRUE(made) << made.error().message;
  Result<StubMap> client = StubMap::map(made->fd.get());
  ASSERT_TRUE(client) << client.error().message;
  EXPECT_NE(client->get(), made->map.get());
  EXPECT_EQ((*client)->devices, 2u);
  EXPECT_EQ((*client)->client_pid, 4711u);
  EXPECT_EQ((*client)->daemon_alive, 1u);
  EXPECT_EQ((*client)->grant[0].polled.capsm, 0u);
  store(made->map->grant[1].polled.capsm, 40u);
  EXPECT_EQ(load((*client)->grant[1].polled.capsm), 40u);
  store((*client)->usage[1].launches, std::uint64_t{1} << 40);
  EXPECT_EQ(load(made->map->usage[1].launches), std::uint64_t{1} << 40);
  store(record_at(*client->get(), kRecords - 1).kernel, std::uint64_t{42});
  EXPECT_EQ(load(record_at(*made->map.get(), 2 * kRecords - 1).kernel), 42u);
}

TEST(StubMap, NamesAKernelByModuleAndName) {
  EXPECT_EQ(kernel_hash("m", "f"), kernel_hash("m", "f"));
  EXPECT_NE(kernel_hash("m", "f"), kernel_hash("mf", ""));
  EXPECT_NE(kernel_hash("", "mf"), kernel_hash("m", "f"));
}

TEST(StubMap, TheFileIsPrivateAndCannotShrink) {
  Result<NewStub> made = NewStub::create(1, 1);
  ASSERT_TRUE(made);
  struct stat info {};
  ASSERT_EQ(fstat(made->fd.get(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  EXPECT_NE(fcntl(made->fd.get(), F_GETFD) & FD_CLOEXEC, 0);
  EXPECT_NE(ftruncate(made->fd.get(), 0), 0);
  EXPECT_NE(ftruncate(made->fd.get(), 1 << 20), 0);
}

TEST(StubMap, WhoTakesAPageCannotGiveItsMemoryBack) {
  Result<NewStub> made = NewStub::create();
  ASSERT_TRUE(made);
  EXPECT_FALSE(made->is_sealed());
  const UniqueFd theirs(dup(made->fd.get()));
  Result<StubMap> taken = StubMap::take(theirs.get());
  ASSERT_TRUE(taken) << taken.error().message;
  EXPECT_TRUE(made->is_sealed());
  const auto punch = [&] { return fallocate(theirs.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, kStubBytes); };
  EXPECT_NE(punch(), 0);
  EXPECT_NE(madvise(taken->get(), kStubBytes, MADV_REMOVE), 0);
  made->begin(1, 7);
  EXPECT_TRUE(taken->check());
  store((*taken)->usage[0].demand, 5u);
  EXPECT_EQ(load(made->map->usage[0].demand), 5u);
}

/// What of this process's memory is locked, in KiB.
int locked_kib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmLck:")) return std::stoi(line.substr(6));
  return -1;
}

TEST(StubMap, AClientsPageIsNotSwappedOut) {
  Result<NewStub> made = NewStub::create();
  ASSERT_TRUE(made);
  ASSERT_TRUE(StubMap::take(made->fd.get()));
  const int before = locked_kib();
  EXPECT_TRUE(made->stays());
  EXPECT_EQ(locked_kib(), before + static_cast<int>(kStubBytes >> 10));
  made->map = {};
  EXPECT_EQ(locked_kib(), before);
}

TEST(StubMap, WhoMayLockNothingGoesOn) {
  Result<NewStub> made = NewStub::create();
  ASSERT_TRUE(made);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_MEMLOCK, &before), 0);
  const rlimit none{0, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_MEMLOCK, &none), 0);
  EXPECT_TRUE(made->stays());
  ASSERT_EQ(setrlimit(RLIMIT_MEMLOCK, &before), 0);
}

TEST(StubMap, ThisKernelSeals) {
  EXPECT_TRUE(NewStub::can_be_sealed());
}

TEST(StubMap, APageThatIsWholeAndNotSealedIsNotTaken) {
  Result<NewStub> made = NewStub::create();
  ASSERT_TRUE(made);
  std::memset(static_cast<void*>(made->map.get()), 0, kStubBytes);
  EXPECT_FALSE(made->is_sealed());
}

TEST(StubMap, APageWithAHoleIsNotTaken) {
  Result<NewStub> made = NewStub::create();
  ASSERT_TRUE(made);
  ASSERT_EQ(ftruncate(made->fd.get(), kStubBytes), 0);
  ASSERT_EQ(fcntl(made->fd.get(), F_ADD_SEALS, 0x0010), 0);  // F_SEAL_FUTURE_WRITE
  EXPECT_FALSE(made->is_sealed());
  made->begin(1, 7);  // takes memory for its head alone
  EXPECT_FALSE(made->is_sealed());
}

TEST(StubMap, RefusesWhatIsNotAStub) {
  EXPECT_FALSE(NewStub::create(kMaxDevices + 1, 1));
  EXPECT_FALSE(StubMap::map(-1));
  UniqueFd empty(memfd_create("x", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_EQ(StubMap::map(empty.get()).error().message, "stub page: wrong size of the file");
  ASSERT_EQ(ftruncate(empty.get(), kStubBytes), 0);
  EXPECT_EQ(StubMap::map(empty.get()).error().message, "stub page: the file may shrink");
  ASSERT_EQ(fcntl(empty.get(), F_ADD_SEALS, F_SEAL_SHRINK), 0);
  EXPECT_EQ(StubMap::map(empty.get()).error().message, "stub page: not a stub page (magic)");

  const auto refused_after = [](const std::function<void(Stub&)>& damage) {
    Result<NewStub> made = NewStub::create(1, 1);
    damage(*made->map.get());
    const Result<StubMap> map = StubMap::map(made->fd.get());
    return map ? std::string("accepted") : map.error().message;
  };
  EXPECT_EQ(refused_after([](Stub& s) { s.version = kStubVersion + 1; }),
            "stub page: made by another version of gpuctld");
  EXPECT_EQ(refused_after([](Stub& s) { s.size += 64; }), "stub page: made by another version of gpuctld");
  EXPECT_EQ(refused_after([](Stub& s) { s.devices = kMaxDevices + 1; }), "stub page: more devices than fit");
  EXPECT_EQ(refused_after([](Stub&) {}), "accepted");
}

TEST(Stub, InputsAreRoundedUpAndBounded) {
  EXPECT_EQ(to_kib(0), 0u);
  EXPECT_EQ(to_kib(1), 1u);
  EXPECT_EQ(to_kib(1024), 1u);
  EXPECT_EQ(to_kib(1025), 2u);
  EXPECT_EQ(to_kib(UINT64_MAX), UINT32_MAX);
}

TEST(StubMap, MovingKeepsOneOwner) {
  Result<NewStub> made = NewStub::create(1, 1);
  StubMap a = std::move(made->map);
  EXPECT_FALSE(made->map);
  StubMap b;
  b = std::move(a);
  ASSERT_TRUE(b);
  EXPECT_EQ(b->magic, kStubMagic);
}

/// Sleeps while `word` holds zero, or until something else wakes the thread.
void wait_while_zero(const std::uint32_t& word) {
  const timespec limit{.tv_sec = 30, .tv_nsec = 0};
  const long status = ::syscall(SYS_futex, &word, FUTEX_WAIT, 0, &limit, nullptr, 0);
  ASSERT_FALSE(status != 0 && errno == ETIMEDOUT);
}

TEST(Futex, WakesThroughAnotherMapping) {
  Result<NewStub> made = NewStub::create(1, 1);
  ASSERT_TRUE(made);
  std::thread client([fd = made->fd.get()] {
    Result<StubMap> map = StubMap::map(fd);
    ASSERT_TRUE(map);
    const std::uint32_t& epoch = (*map)->grant[0].epoch;
    while (load(epoch) == 0) wait_while_zero(epoch);
    EXPECT_EQ(load((*map)->grant[0].polled.capsm), 12u);
  });
  std::this_thread::sleep_for(20ms);
  store(made->map->grant[0].polled.capsm, 12u);
  store(made->map->grant[0].epoch, 1u);
  futex_wake(made->map->grant[0].epoch);
  client.join();
}

TEST(Futex, WhoWakesPaysForAFewHoweverManyWait) {
  constexpr int kMany = 5 * kMostWoken;
  std::uint32_t word = 0;
  std::atomic<int> woken = 0;
  std::vector<std::thread> waiting;
  for (int i = 0; i < kMany; ++i)
    waiting.emplace_back([&] {
      while (load(word) == 0) wait_while_zero(word);
      ++woken;
    });
  const auto wake = [&] {
    const int now = futex_wake(word);
    EXPECT_LE(now, kMostWoken);
    return now;
  };
  for (int sum = 0; sum < 20 * kMany;) sum += wake();  // they wait again
  store(word, 1u);
  while (woken < kMany) wake();
  for (std::thread& thread : waiting) thread.join();
}

}  // namespace
}  // namespace gpuctl::ipc
