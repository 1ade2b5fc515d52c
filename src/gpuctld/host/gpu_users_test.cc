#include "gpuctld/host/gpu_users.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>

#include "gpuctld/protocol/process.h"
#include "ipc/unique_fd.h"

namespace gpuctl::daemon {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

/// A directory with a file that stands for the device.
struct Scratch {
  Scratch() {
    std::string pattern = testing::TempDir() + "gpu-users-XXXXXX";
    directory = fs::canonical(::mkdtemp(pattern.data()));
    device = directory / "nvidia-uvm";
    std::ofstream(device) << "";
  }
  ~Scratch() { fs::remove_all(directory); }
  fs::path directory, device;
};

/// A process that has done something and waits.
struct Child {
  explicit Child(const std::function<void()>& action) {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe(ends.data()), 0);
    pid = ::fork();
    if (pid == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      action();
      if (::write(ends[1], "", 1) == 1) ::pause();
      ::_exit(0);
    }
    ::close(ends[1]);
    char none = 0;
    EXPECT_EQ(::read(ends[0], &none, 1), 1) << "it is ready";
    ::close(ends[0]);
  }
  ~Child() {
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }
  pid_t pid = 0;
};

std::vector<std::int32_t> pids(const std::vector<GpuUser>& users) {
  std::vector<std::int32_t> all;
  for (const GpuUser& user : users) all.push_back(user.pid);
  return all;
}

TEST(GpuUsers, AreThoseThatHaveTheDeviceAndNotTheLibrary) {
  const Scratch scratch;
  const auto open_device = [&] { (void)::open(scratch.device.c_str(), O_RDONLY); };
  const Child without([] {}), user([&] {
    open_device();
    ::prctl(PR_SET_NAME, "train");
    if (::fork() != 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::pause();  // it has inherited the device
  });
  const Child managed([&] {
    open_device();
    const std::string library = scratch.directory / "libgpuslice.so.0";
    std::ofstream(library) << "x";
    const int fd = ::open(library.c_str(), O_RDONLY);
    EXPECT_NE(::mmap(nullptr, 1, PROT_READ, MAP_PRIVATE, fd, 0), MAP_FAILED);
  });
  const auto seen = read_gpu_users(gpu_users_answer(scratch.device));
  ASSERT_TRUE(seen) << seen.error().message;
  ASSERT_EQ(pids(*seen), std::vector<std::int32_t>{user.pid});
  EXPECT_EQ(seen->front().start, start_of(user.pid));
  EXPECT_EQ(seen->front().uid, ::geteuid());
  EXPECT_EQ(seen->front().name, "train");
}

/// Has the device open, and the file mapped.
void use(const Scratch& scratch, const char* file) {
  (void)::open(scratch.device.c_str(), O_RDONLY);
  const std::string path = scratch.directory / file;
  std::ofstream(path) << "x";
  EXPECT_NE(::mmap(nullptr, 1, PROT_READ, MAP_PRIVATE, ::open(path.c_str(), O_RDONLY), 0), MAP_FAILED);
}

TEST(GpuUsers, WhoHasTheDriverTooDidNotOnlyInheritTheDevice) {
  const Scratch scratch;
  const Child with([&] { use(scratch, "libcuda.so.580.1"); }), inherited([&] { use(scratch, "libcublas.so.12"); });
  const auto seen = read_gpu_users(gpu_users_answer(scratch.device));
  ASSERT_TRUE(seen) << seen.error().message;
  ASSERT_EQ(seen->size(), 2u);
  for (const GpuUser& one : *seen) EXPECT_EQ(one.driver, one.pid == with.pid) << one.pid;
}

/// As one that a shell starts which has opened the device itself, or one that a program with the driver forks.
TEST(GpuUsers, WhoHasTheDriverIsToldOfWhateverItsParentHas) {
  for (const char* parent_has : {"libcublas.so.12", "libcuda.so.580.1"}) {
    const Scratch scratch;
    const Child parent([&] {
      use(scratch, parent_has);
      new Child([&] {
        use(scratch, "libcuda.so.580.2");
        ::prctl(PR_SET_NAME, "train");
      });  // ends with its parent
    });
    const auto seen = read_gpu_users(gpu_users_answer(scratch.device));
    ASSERT_TRUE(seen) << seen.error().message;
    EXPECT_EQ(seen->size(), 2u);
    const auto of_child = std::ranges::find(*seen, "train", &GpuUser::name);
    ASSERT_NE(of_child, seen->end()) << parent_has;
    EXPECT_TRUE(of_child->driver);
    EXPECT_EQ(of_child->child, std::string(parent_has).starts_with("libcuda")) << "the parent is told of before it";
    EXPECT_FALSE(seen->at(of_child == seen->begin() ? 1 : 0).child);
  }
}

TEST(GpuUsers, WhoHasTheDriverIsToldOfBesideManyThatHaveNot) {
  const Scratch scratch;
  std::vector<std::unique_ptr<Child>> others;
  while (others.size() < kMostGpuUsersOfUser)
    others.push_back(std::make_unique<Child>([&] { (void)::open(scratch.device.c_str(), O_RDONLY); }));
  const Child with([&] { use(scratch, "libcuda.so.580.1"); });
  const auto seen = read_gpu_users(gpu_users_answer(scratch.device));
  ASSERT_TRUE(seen) << seen.error().message;
  ASSERT_EQ(seen->size(), kMostGpuUsersOfUser);
  EXPECT_EQ(seen->front().pid, with.pid);
}

/// As of one that loads data by many.
TEST(GpuUsers, ChildrenTakeNoPlaceOfOthers) {
  const Scratch scratch;
  const Child parent([&] {
    use(scratch, "libcuda.so.580.1");
    for (std::size_t i = 0; i < kMostGpuUsersOfUser + 4; ++i) new Child([] {});
  });
  const Child later([&] { use(scratch, "libcuda.so.580.2"); });
  const auto seen = read_gpu_users(gpu_users_answer(scratch.device));
  ASSERT_TRUE(seen) << seen.error().message;
  EXPECT_EQ(seen->size(), kMostGpuUsersOfUser + 2);
  EXPECT_TRUE(std::ranges::any_of(*seen, [&](const GpuUser& one) { return one.pid == later.pid && !one.child; }));
}

TEST(GpuUsers, AServerOfMpsIsNoneThoughItsFileWasReplaced) {
  const Scratch scratch;
  const fs::path server = scratch.directory / "nvidia-cuda-mps-server", other = scratch.directory / "train";
  for (const fs::path& program : {server, other}) fs::copy_file("/bin/sleep", program);
  const auto run = [&](const fs::path& program) {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      (void)::open(scratch.device.c_str(), O_RDONLY);
      ::execl(program.c_str(), program.c_str(), "600", nullptr);
      ::_exit(1);
    }
    ::close(ends[1]);
    char none = 0;
    EXPECT_EQ(::read(ends[0], &none, 1), 0) << "exec has closed it";
    ::close(ends[0]);
    return pid;
  };
  const pid_t mps = run(server), train = run(other);
  const auto seen = [&] { return pids(*read_gpu_users(gpu_users_answer(scratch.device))); };
  EXPECT_EQ(seen(), std::vector<std::int32_t>{train});
  fs::remove(server);
  EXPECT_EQ(seen(), std::vector<std::int32_t>{train});
  for (const pid_t child : {mps, train}) {
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
  }
}

TEST(GpuUsers, WhoHasManyDescriptorsOpenHidesHimselfAlone) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can be other users";
  const Scratch scratch;
  fs::permissions(scratch.directory, fs::perms::all);
  const auto open_device_as = [&](uid_t uid, int others) {
    for (int i = 0; i < others; ++i) (void)::dup(0);
    (void)!::setresuid(uid, uid, uid);
    ::prctl(PR_SET_DUMPABLE, 1);
    (void)::open(scratch.device.c_str(), O_RDONLY);
  };
  const Child many([&] { open_device_as(65533, 200); }), few([&] { open_device_as(65532, 0); });
  EXPECT_EQ(pids(*read_gpu_users(gpu_users_answer(scratch.device, 150))), std::vector<std::int32_t>{few.pid});
  EXPECT_EQ(read_gpu_users(gpu_users_answer(scratch.device))->size(), 2u);
}

TEST(GpuUsers, AnAnswerThatCannotBeReadIsAnError) {
  for (const char* bad :
       {"", "[]", "{}",
        R"({"programs":[{"pid":0,"start":1,"uid":0,"name":"","cgroup":"","driver":true,"child":false}]})",
        R"({"programs":[{"pid":1}]})", R"({"programs":[{"pid":1,"start":1,)"})
    EXPECT_FALSE(read_gpu_users(bad)) << bad;
}

TEST(GpuUsers, WhereTheModuleHasNoUserNobodyIsLookedFor) {
  const Scratch scratch;
  EXPECT_TRUE(cuda_may_be_used(scratch.directory / "none"));
  for (const auto& [text, may] : {std::pair("0\n", false), std::pair("3\n", true)}) {
    std::ofstream(scratch.directory / "refcnt") << text;
    EXPECT_EQ(cuda_may_be_used(scratch.directory / "refcnt"), may);
  }
}

/// Answers what it is told, one answer a connection, then nothing.
struct Looked : testing::Test {
  using Protocol = boost::asio::local::stream_protocol;

  void answer(std::vector<std::string> answers) {
    answers_ = std::move(answers);
    accept();
    watch_.begin();
    while (!answers_.empty() || !over_) context_.run_one();
    watch_.stop();
    acceptor_.close();
    context_.run();
  }
  void accept() {
    acceptor_.async_accept([this](boost::system::error_code error, Protocol::socket connection) {
      if (error) return;
      over_ = answers_.empty();
      if (!over_) {
        ::write(connection.native_handle(), answers_.front().data(), answers_.front().size());
        answers_.erase(answers_.begin());
      }
      accept();
    });
  }

  Scratch scratch_;
  std::string path_ = scratch_.directory / "look";
  boost::asio::io_context context_{1};
  Protocol::acceptor acceptor_{context_, Protocol::endpoint(path_)};
  std::vector<std::string> answers_;
  bool over_ = false;
  std::vector<std::vector<std::int32_t>> heard_;
  explicit Looked(std::chrono::milliseconds every = 1ms) : every_(every) {}

  std::chrono::milliseconds every_;
  bool waits_ = false;  ///< for something to become of who was seen
  GpuUserWatch watch_{context_, path_,
                      [this](const auto& users) {
                        heard_.push_back(pids(users));
                        return waits_;
                      },
                      GpuUserWatch::Pace{.every = every_, .again = 1ms, .patience = 10s}};
};

struct SeldomLooked : Looked {
  SeldomLooked() : Looked(24h) {}
};

std::string of(std::int32_t pid, int start) {
  return R"({"programs":[{"pid":)" + std::to_string(pid) + R"(,"start":)" + std::to_string(start) +
         R"(,"uid":7,"name":"train","cgroup":"/x","driver":true,"child":false}]})";
}

TEST_F(Looked, OnlyWhomTwoLooksInARowHaveSeenIsTold) {
  using Pids = std::vector<std::int32_t>;
  answer({of(4, 1), of(4, 2), of(4, 2), "{", of(4, 2), of(5, 1), R"({"programs":[]})"});
  EXPECT_EQ(heard_, (std::vector<Pids>{{}, {}, {4}, {4}, {}, {}}));
  EXPECT_TRUE(watch_.sees());
}

TEST_F(SeldomLooked, WhileSomethingIsToBecomeOfWhoWasSeenTheNextLookComesSoon) {
  waits_ = true;
  answer({of(4, 1), of(4, 1), of(4, 1), of(4, 1)});
  EXPECT_EQ(heard_.size(), 4u);
}

TEST_F(SeldomLooked, AfterALookThatFailedTheNextComesSoon) {
  waits_ = true;  // so that the last look is not that of a day hence
  answer({"{", of(4, 1), of(4, 1)});
  EXPECT_EQ(heard_, (std::vector<std::vector<std::int32_t>>{{}, {4}}));
}

/// Nobody is seen, so the next one would come in a day.
TEST_F(SeldomLooked, ALookNowIsOneMoreAndNoneBesideThatUnderWay) {
  boost::asio::steady_timer asks(context_);
  std::function<void()> ask = [&] {
    asks.expires_after(1ms);
    asks.async_wait([&](boost::system::error_code error) {
      if (error) return;
      watch_.look_now();
      watch_.look_now();
      if (!over_) ask();
    });
  };
  ask();
  answer({R"({"programs":[]})", R"({"programs":[]})"});
  EXPECT_EQ(heard_.size(), 2u);
}

TEST_F(Looked, WhoIsNotAnsweredSeesNobody) {
  EXPECT_FALSE(watch_.sees());
  answer({"{"});
  EXPECT_FALSE(watch_.sees());
}

}  // namespace
}  // namespace gpuctl::daemon
