#include "gpuctld/host/exes.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/write.hpp>
#include <filesystem>
#include <fstream>
#include <optional>
#include <vector>

namespace gpuctl::daemon::exes_test {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using Protocol = boost::asio::local::stream_protocol;
using boost::system::error_code;

struct Scratch {
  Scratch() {
    std::string pattern = testing::TempDir() + "gpuctld-exes-XXXXXX";
    directory = ::mkdtemp(pattern.data());
  }
  ~Scratch() { fs::remove_all(directory); }
  /// A process of that number in the directory, as /proc would have it.
  void process(const std::string& pid, std::uint64_t start, const std::string& exe) const {
    fs::create_directories(directory / pid / "task" / pid);
    std::ofstream stat(directory / pid / "task" / pid / "stat");
    stat << pid << " (x) S";
    for (int field = 4; field < 22; ++field) stat << " 0";
    stat << " " << start << " 0\n";
    fs::create_symlink(exe, directory / pid / "exe");
  }
  fs::path directory;
};

TEST(Exes, AreToldWithTheStartOfTheProcess) {
  const Scratch proc;
  proc.process("7", 500, "/usr/bin/ollama");
  proc.process("8", 600, "/usr/bin/python3.11 (deleted)");
  proc.process("9", 700, "/tmp/two\n7 500 /usr/bin/lines");
  const std::string answer = exes_answer("7 8 9 10", proc.directory);
  EXPECT_EQ(answer, "7 500 /usr/bin/ollama\n8 600 /usr/bin/python3.11\nok\n");
  EXPECT_EQ(exe_in_answer(answer, {7, 500, 0}), "/usr/bin/ollama");
  EXPECT_EQ(exe_in_answer(answer, {8, 600, 0}), "/usr/bin/python3.11") << "it was replaced since, as by an upgrade";
  EXPECT_EQ(exe_in_answer(answer, {7, 501, 0}), "") << "another process has its number now";
  EXPECT_EQ(exe_in_answer(answer, {9, 700, 0}), "");
}

TEST(Exes, AnAnswerThatWasCutOffSaysNothing) {
  for (const char* answer : {"", "7 500 /usr/bin/ollama\n", "7 500 /usr/bin/ollama", "7 500 /usr/bin/ollama\nok"})
    EXPECT_EQ(exe_in_answer(answer, {7, 500, 0}), "") << answer;
  EXPECT_EQ(exe_in_answer("ok\n", {7, 500, 0}), "");
}

TEST(Exes, NothingButNumbersIsTaken) {
  for (const char* asked : {"", " ", "7 ", " 7", "7  8", "0", "-1", "self", "7/../8", "7\t8", "2147483648"})
    EXPECT_EQ(exes_answer(asked), "") << asked;
  std::string many = "1";
  for (std::size_t i = 1; i < kMostExes; ++i) many += " 1";
  EXPECT_NE(exes_answer(many), "");
  EXPECT_EQ(exes_answer(many + " 1"), "");
}

/// In place of gpuctld --exe: answers each question, unless it is to be silent.
class ExeSearchTest : public testing::Test {
 protected:
  ExeSearchTest() { take(); }
  void take() {
    listener_.async_accept([this](error_code error, Protocol::socket connection) {
      if (error) return;
      std::string line;
      boost::asio::read_until(connection, boost::asio::dynamic_buffer(line), '\n');
      questions_.push_back(line);
      if (silent_)
        kept_.emplace(std::move(connection));
      else
        boost::asio::write(connection, boost::asio::buffer(answer_));
      take();
    });
  }
  void find(int who, std::int32_t pid) {
    search_.find(&numbers_[who], {pid, 500, 0}, [this, who](const std::string& exe) { found_[who] = exe; });
  }
  void run(std::size_t found) {
    for (int i = 0; i < 1000 && found_.size() < found; ++i) context_.run_one_for(10ms);
  }

  Scratch scratch_;
  boost::asio::io_context context_{1};
  std::string socket_ = scratch_.directory / "exe";
  Protocol::acceptor listener_{context_, Protocol::endpoint(socket_)};
  ExeSearch search_{context_, socket_, {.pause = 20ms, .patience = 200ms}};
  std::optional<Protocol::socket> kept_;
  std::string answer_ = "7 500 /usr/bin/a\n8 500 /usr/bin/b\n9 500 /usr/bin/c\nok\n";
  bool silent_ = false;
  std::vector<std::string> questions_;
  std::map<int, std::string> found_;
  int numbers_[4] = {};
};

TEST_F(ExeSearchTest, WhoComesTogetherIsInOneQuestionAndWhoComesLaterInTheNext) {
  find(0, 7), find(1, 8);
  EXPECT_TRUE(found_.empty()) << "nobody is told from within find()";
  run(2);
  find(2, 9);
  run(3);
  EXPECT_EQ(found_, (std::map<int, std::string>{{0, "/usr/bin/a"}, {1, "/usr/bin/b"}, {2, "/usr/bin/c"}}));
  ASSERT_EQ(questions_.size(), 2u);
  EXPECT_EQ(questions_[0].size(), std::string("7 8\n").size());
  EXPECT_EQ(questions_[1], "9\n");
  EXPECT_TRUE(search_.sees());
}

TEST_F(ExeSearchTest, WhoIsForgottenIsNotTold) {
  find(0, 7), find(1, 8);
  search_.forget(&numbers_[0]);
  run(1);
  EXPECT_EQ(found_, (std::map<int, std::string>{{1, "/usr/bin/b"}}));
}

TEST_F(ExeSearchTest, WithoutAnAnswerNobodyWaitsForEver) {
  silent_ = true;
  find(0, 7);
  run(1);
  EXPECT_EQ(found_, (std::map<int, std::string>{{0, ""}}));
  EXPECT_FALSE(search_.sees());
  silent_ = false;
  find(1, 8);
  run(2);
  EXPECT_EQ(found_.at(1), "/usr/bin/b");
  EXPECT_TRUE(search_.sees());
}

TEST_F(ExeSearchTest, WithoutASocketTheDaemonLooksItself) {
  ExeSearch search(context_, "", {});
  const ProcessIdentity self{::getpid(), start_of(::getpid()), ::getuid()};
  search.find(this, self, [this](const std::string& exe) { found_[0] = exe; });
  run(1);
  EXPECT_EQ(found_.at(0), fs::read_symlink("/proc/self/exe"));
}

}  // namespace
}  // namespace gpuctl::daemon::exes_test
