#include "gpuctld/host/managed_mps.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/asio/post.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <thread>

#include "gpuctld/host/mps.h"

namespace gpuctl::daemon::managed_mps_test {
namespace {

using namespace std::chrono_literals;

/// A control program whose daemon is a process of MPS's name that sleeps.
class ManagedMpsTest : public testing::Test {
 protected:
  ManagedMpsTest() {
    std::string pattern = testing::TempDir() + "gpuctl-managed-XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
    std::filesystem::copy_file("/bin/sleep", directory_ + "/nvidia-cuda-mps-sleeps");
    std::ofstream(directory_ + "/nvidia-cuda-mps-control") << R"sh(#!/bin/sh
cd "$CUDA_MPS_PIPE_DIRECTORY" || exit 9
[ -e ../refuses ] && { echo no GPU; exit 1; }
if [ "$1" = -d ]; then
  [ -e ../hangs ] && exec sleep 600
  [ -e ../knows_no_more ] && [ $# -gt 1 ] && { echo unknown option; exit 1; }
  echo "$GPUCTL_MPS_SERVER $LD_PRELOAD $*" > ../asked
  bash -c 'exec -a "$0" ../nvidia-cuda-mps-sleeps 600' "${2:-mps}" < /dev/null > /dev/null 2>&1 &
  until [ /proc/$!/exe -ef ../nvidia-cuda-mps-sleeps ]; do :; done  # this script has the same name in comm
  echo $! > nvidia-cuda-mps-control.pid
  exit
fi
read -r verb more; echo "$verb $more" >> ../commands
[ -e ../forbids ] && { echo "Insufficient privileges for UID 7. Control deamon settings"; exit; }
case $verb in
  get_server_list) [ -e ../clients ] && echo 77 ;;
  get_client_list) [ "$more" = 77 ] && cat ../clients ;;
  quit) [ -e ../hangs ] && exec sleep 600; [ -e ../ignores ] && exit; [ -e ../stays ] && { echo cannot; exit 1; }; kill "$(cat nvidia-cuda-mps-control.pid)" ;;
esac
exit 0
)sh";
    ::chmod((directory_ + "/nvidia-cuda-mps-control").c_str(), 0755);
    ::setenv("PATH", (directory_ + ":" + path_).c_str(), 1);
  }
  ~ManagedMpsTest() override {
    mps().stop();
    end_mps();
    ::setenv("PATH", path_.c_str(), 1);
    std::filesystem::remove_all(directory_);
  }

  std::string place() const { return directory_ + "/mps"; }
  ManagedMps& mps() {
    if (!mps_) mps_.emplace(context_, ManagedMps::Place{place(), "/run/s", "", "", ""}, log(), 300ms, patience_);
    return *mps_;
  }
  ManagedMps::Log log() {
    return [this](const std::string& line) { log_.push_back(line); };
  }
  std::string text_of(const std::string& name) {
    std::ifstream file(directory_ + "/" + name);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void end_mps() {
    if (const auto pid = mps_process_in(place(), "/proc", ::geteuid())) ::kill(*pid, SIGKILL);
  }
  /// Asks for it, and returns whether an answer came.
  bool ask() {
    bool answered = false;
    if (!mps().wait(this, [&] { answered = true; })) return false;
    run_until([&] { return answered; });
    return answered;
  }
  template <class Condition>
  void run_until(Condition condition) {
    for (int i = 0; i < 4000 && !condition(); ++i) {
      context_.restart();
      context_.run_for(5ms);
      std::this_thread::sleep_for(1ms);  // there may be nothing to run
    }
  }

  /// Between the time for which a timer was set and its handler. The loop runs one handler after the other: this one
  /// takes so long, the next one was there before the loop looks for timers.
  void after_a_timer_has_expired(const std::function<void()>& what) {
    bool done = false;
    boost::asio::post(context_, [&] {
      const auto until = std::chrono::steady_clock::now() + 250ms;  // it looks after itself each 200 ms
      while (std::chrono::steady_clock::now() < until) continue;
      boost::asio::post(context_, [&] { what(), done = true; });
    });
    run_until([&] { return done; });
    context_.restart();
    context_.run_for(1s);
  }

  const std::string path_ = std::getenv("PATH");
  std::string directory_;
  boost::asio::io_context context_{1};
  std::vector<std::string> log_;
  std::chrono::milliseconds patience_ = kMpsPatience;
  std::optional<ManagedMps> mps_;
};

/// They are in memory.
TEST_F(ManagedMpsTest, BeginsWithoutLongLogs) {
  const std::filesystem::path log = place() + "/server.log", other = place() + "/control.log";
  std::filesystem::create_directory(place());
  for (const auto& file : {log, other}) std::ofstream(file) << "a line\n";
  std::filesystem::resize_file(log, 2 << 20);
  EXPECT_TRUE(ask());
  EXPECT_LT(std::filesystem::file_size(log), 1u << 20);
  EXPECT_GT(std::filesystem::file_size(other), 0u);
}

TEST_F(ManagedMpsTest, IsStartedForTheFirstProgramWithTheLibraryInside) {
  mps().note_use(7);
  EXPECT_TRUE(ask());
  EXPECT_TRUE(mps().active());
  EXPECT_EQ(log_, std::vector<std::string>{"started MPS, with libgpuslice inside"});
  EXPECT_TRUE(text_of("asked").starts_with("/run/s "));
  EXPECT_NE(text_of("asked").find("libgpuslice.so"), std::string::npos);
  EXPECT_FALSE(ask()) << "there is one";
}

/// Each answer is work for its program, and many may wait: others come in between.
TEST_F(ManagedMpsTest, WhoWaitIsToldInATurnOfItsOwn) {
  constexpr int kMany = 100;
  std::vector<int> whose(kMany);
  int told = 0, told_before_others = 0;
  for (int& who : whose)
    ASSERT_TRUE(mps().wait(&who, [&] {
      if (++told == 1) boost::asio::post(context_, [&] { told_before_others = told; });
      if (told == 3) mps().forget(&whose[kMany - 1]);
    }));
  run_until([&] { return told == kMany - 1; });
  EXPECT_EQ(told, kMany - 1) << "one was forgotten";
  EXPECT_GE(told_before_others, 1);
  EXPECT_LE(told_before_others, 3);
  context_.restart();
  context_.run_for(20ms);
  EXPECT_EQ(told, kMany - 1);
}

TEST_F(ManagedMpsTest, IsEndedWhenNobodyUsesIt) {
  mps().note_use(7);
  ASSERT_TRUE(ask());
  context_.restart();
  context_.run_for(600ms);
  EXPECT_TRUE(mps().active());
  mps().note_use({});
  run_until([this] { return log_.size() == 2; });
  EXPECT_EQ(log_.back(), "ended MPS, which nobody used");
  EXPECT_EQ(text_of("commands"), "get_server_list \nquit \n");
  mps().note_use(7);
  EXPECT_TRUE(ask()) << "and started again for the next program, at once";
  end_mps();
  run_until([this] { return log_.size() == 4; });
  EXPECT_EQ(log_.back(), "MPS has ended; it is started again for the next program") << "this time nobody ended it";
}

TEST_F(ManagedMpsTest, OthersThatUseItKeepIt) {
  std::ofstream(directory_ + "/clients") << "4711\n";
  ASSERT_TRUE(ask());
  run_until([this] { return text_of("commands").ends_with("get_client_list 77\n"); });
  EXPECT_EQ(text_of("commands"), "get_server_list \nget_client_list 77\n");
  EXPECT_TRUE(mps().active());
  std::filesystem::remove(directory_ + "/clients");
  run_until([this] { return log_.size() == 2; });
  EXPECT_EQ(log_.back(), "ended MPS, which nobody used");
}

TEST_F(ManagedMpsTest, OneThatDoesNotEndIsAskedAgain) {
  std::ofstream(directory_ + "/stays") << "";
  ASSERT_TRUE(ask());
  run_until([this] { return text_of("commands").ends_with("quit \nget_server_list \nquit \n"); });
  EXPECT_TRUE(mps().active());
  EXPECT_EQ(log_.size(), 1u);
  std::filesystem::remove(directory_ + "/stays");
  run_until([this] { return log_.size() == 2; });
  EXPECT_EQ(log_.back(), "ended MPS, which nobody used");
}

/// It says so, and its status is 0: that names no server, and may not be taken for none.
TEST_F(ManagedMpsTest, OneThatTellsUsNothingIsKept) {
  std::ofstream(directory_ + "/forbids") << "";
  ASSERT_TRUE(ask());
  run_until([this] { return text_of("commands").ends_with("get_server_list \nget_server_list \n"); });
  EXPECT_EQ(text_of("commands"), "get_server_list \nget_server_list \n");
  std::filesystem::remove(directory_ + "/forbids");
  run_until([this] { return log_.size() == 2; });
  EXPECT_EQ(log_.back(), "ended MPS, which nobody used");
}

TEST_F(ManagedMpsTest, OneThatHangsOrIgnoresThatItIsToEndHoldsUpNoProgram) {
  patience_ = 1s;
  for (const char* const how : {"/hangs", "/ignores"}) {
    ASSERT_TRUE(ask()) << how;
    std::ofstream(directory_ + how) << "";
    bool waits = false, answered = false;
    run_until([&] { return waits = mps().wait(this, [&] { answered = true; }); });
    EXPECT_TRUE(waits && mps().active()) << how << ": who comes while it is to end waits";
    run_until([&] { return answered; });
    EXPECT_TRUE(answered) << how;
    EXPECT_FALSE(ask()) << how << ": then it is as any that runs";
    std::filesystem::remove(directory_ + how);
    run_until([this] { return !mps().active(); });
    run_until([this] { return log_.back() == "ended MPS, which nobody used"; });
    std::filesystem::remove(directory_ + "/commands");
  }
}

TEST_F(ManagedMpsTest, OneThatHangsAtItsStartHoldsUpNoProgram) {
  patience_ = 400ms;
  std::ofstream(directory_ + "/hangs") << "";
  EXPECT_TRUE(ask()) << "the answer comes all the same";
  EXPECT_FALSE(mps().active());
  EXPECT_NE(log_.back().find("does not answer"), std::string::npos) << log_.back();
}

TEST_F(ManagedMpsTest, TheNextDaemonTakesItOver) {
  mps().note_use(7);
  ASSERT_TRUE(ask());
  mps().stop();
  ManagedMps next(context_, {place(), "/run/s", "", "", ""}, log(), 300ms);
  EXPECT_TRUE(next.active());
  EXPECT_FALSE(next.wait(&next, [] {}));
  run_until([this] { return log_.size() == 2; });
  EXPECT_EQ(log_.back(), "ended MPS, which nobody used");
}

TEST_F(ManagedMpsTest, ItServesOneUserAtATimeUnlessItKnowsHowToServeMore) {
  if (::geteuid() != 0) GTEST_SKIP() << "is for root";
  mps().note_use(7);
  ASSERT_TRUE(ask());
  EXPECT_TRUE(text_of("asked").ends_with(" -d\n")) << text_of("asked");
  EXPECT_TRUE(mps().admits(7));
  EXPECT_FALSE(mps().admits(8));
  EXPECT_TRUE(mps().admits(7));
}

/// Others would wait in cuInit until those that are in it have ended.
TEST_F(ManagedMpsTest, TheNextDaemonAdmitsNobodyBeforeItKnowsWhoIsInIt) {
  if (::geteuid() != 0) GTEST_SKIP() << "is for root";
  mps().note_use(7);
  ASSERT_TRUE(ask());
  mps().stop();
  ManagedMps next(context_, {place(), "/run/s", "", "", ""}, log(), 300ms);
  EXPECT_FALSE(next.admits(8));
  next.note_use({});
  EXPECT_FALSE(next.admits(8)) << "they have not come back yet";
  next.note_use(7);
  EXPECT_FALSE(next.admits(8));
  EXPECT_TRUE(next.admits(7));
}

TEST_F(ManagedMpsTest, TheNextDaemonAdmitsAnybodyOnceNobodyIsInIt) {
  if (::geteuid() != 0) GTEST_SKIP() << "is for root";
  std::ofstream(directory_ + "/stays") << "";
  mps().note_use(7);
  ASSERT_TRUE(ask());
  mps().stop();
  ManagedMps next(context_, {place(), "/run/s", "", "", ""}, log(), 300ms);
  run_until([&] { return next.admits(8); });
  EXPECT_TRUE(text_of("commands").starts_with("get_server_list \nquit \n")) << text_of("commands");
  EXPECT_TRUE(next.admits(8));
}

TEST_F(ManagedMpsTest, ItServesSeveralUsersWhereItKnowsHow) {
  if (::geteuid() != 0) GTEST_SKIP() << "is for root";
  std::ofstream(directory_ + "/nvidia-cuda-mps-control", std::ios::app) << "# -multiuser-server\n";
  mps().note_use(7);
  ASSERT_TRUE(ask());
  EXPECT_TRUE(text_of("asked").ends_with(" -d -multiuser-server\n")) << text_of("asked");
}

/// Who was told of it comes to it a little later.
TEST_F(ManagedMpsTest, IsNotEndedBeforeAProgramCanHaveCome) {
  if (::geteuid() != 0) GTEST_SKIP() << "is for root";
  for (const char* const knows : {"", "# -multiuser-server\n"}) {
    std::ofstream(directory_ + "/nvidia-cuda-mps-control", std::ios::app) << knows;
    ASSERT_TRUE(ask());
    const auto until = std::chrono::steady_clock::now() + 1s;  // thrice as long as it may be idle
    run_until([&] {
      EXPECT_TRUE(mps().admits(7)) << knows;
      return std::chrono::steady_clock::now() >= until;
    });
    EXPECT_EQ(text_of("commands"), "") << knows;
    run_until([this] { return log_.back() == "ended MPS, which nobody used"; });
    EXPECT_FALSE(mps().active());
    std::filesystem::remove(directory_ + "/commands");
  }
}

TEST_F(ManagedMpsTest, ATimerThatHasExpiredDoesNothingWhenItIsGone) {
  ASSERT_TRUE(ask());
  after_a_timer_has_expired([this] { mps_.reset(); });
  EXPECT_TRUE(context_.stopped()) << "nothing goes on";
}

TEST_F(ManagedMpsTest, ATimerThatHasExpiredDoesNothingWhenItIsStopped) {
  ASSERT_TRUE(ask());
  after_a_timer_has_expired([this] { mps().stop(); });
  EXPECT_TRUE(context_.stopped()) << "the daemon would not end";
}

TEST_F(ManagedMpsTest, IfItDoesNotStartForSeveralUsersItDoesForOne) {
  if (::geteuid() != 0) GTEST_SKIP() << "is for root";
  std::ofstream(directory_ + "/nvidia-cuda-mps-control", std::ios::app) << "# -multiuser-server\n";
  std::ofstream(directory_ + "/knows_no_more") << "";
  mps().note_use(7);
  ASSERT_TRUE(ask());
  EXPECT_TRUE(text_of("asked").ends_with(" -d\n")) << text_of("asked");
  EXPECT_EQ(log_, std::vector<std::string>{"started MPS, with libgpuslice inside"});
}

TEST_F(ManagedMpsTest, ADirectoryOfOthersIsNotUsed) {
  if (::geteuid() != 0) GTEST_SKIP() << "is for root";
  ASSERT_TRUE(std::filesystem::create_directory(place()));
  ASSERT_EQ(::chown(place().c_str(), 7, 7), 0);
  EXPECT_FALSE(ask());
  EXPECT_NE(mps().trouble().find(place()), std::string::npos) << mps().trouble();
}

TEST_F(ManagedMpsTest, OneThatEndsByItselfIsStartedAgainLater) {
  mps().note_use(7);
  ASSERT_TRUE(ask());
  end_mps();
  run_until([this] { return log_.size() == 2; });
  EXPECT_EQ(log_.back(), "MPS has ended; it is started again for the next program");
  EXPECT_FALSE(ask()) << "not at once";
  run_until([this] { return ask(); });
  EXPECT_TRUE(mps().admits(::geteuid()));
  EXPECT_TRUE(mps().active());
}

TEST_F(ManagedMpsTest, WhereItCannotBeStartedProgramsDoWithout) {
  std::ofstream(directory_ + "/refuses") << "";
  EXPECT_TRUE(ask()) << "the answer comes all the same";
  EXPECT_FALSE(mps().active());
  ASSERT_EQ(log_.size(), 1u);
  EXPECT_NE(log_[0].find("MPS was not started: "), std::string::npos) << log_[0];
  EXPECT_NE(log_[0].find("no GPU"), std::string::npos) << log_[0];
  EXPECT_FALSE(ask());
}

}  // namespace
}  // namespace gpuctl::daemon::managed_mps_test
