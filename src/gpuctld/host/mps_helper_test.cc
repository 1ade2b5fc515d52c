// gpuctld --mps-control, and MpsControl where that answers behind a socket.
#include "gpuctld/host/mps_helper.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/local/stream_protocol.hpp>
#include <map>
#include <memory>
#include <utility>

#include "gpuctld/host/mps_control.h"
#include "gpuctld/testing/fake_mps_control.h"
#include "ipc/unique_fd.h"

namespace gpuctl::daemon {
namespace {

using namespace std::chrono_literals;
using Protocol = boost::asio::local::stream_protocol;
using boost::system::error_code;
using Outcome = MpsControl::Outcome;

TEST(MpsHelper, ThreeCommandsAreAllowed) {
  for (const char* command : {"get_server_list", "get_client_list 1", "terminate_client 10 2147483647",
                              "@shared get_server_list", "@1a2b3c4d terminate_client 10 2147483647", "@shared quit"})
    EXPECT_TRUE(check_mps_command(command)) << command;
  for (const char* command : {"",
                              "quit",
                              "@ quit",
                              "@shared  quit",
                              "@shared",
                              "@../x quit",
                              "@Shared quit",
                              "@abcdefghijklmnopq quit",
                              "get_server_list ",
                              "get_server_list 1",
                              "get_server_listed",
                              " get_server_list",
                              "get_client_list",
                              "get_client_list ",
                              "get_client_list 0",
                              "get_client_list -1",
                              "get_client_list +1",
                              "get_client_list 0x1",
                              "get_client_list 2147483648",
                              "get_client_list  1",
                              "get_client_list 1 2",
                              "get_client_list 1;quit",
                              "terminate_client 1",
                              "terminate_client 1 2 3",
                              "terminate_client 1\t2",
                              "terminate_client 1 2\r",
                              "set_default_active_thread_percentage 1"})
    EXPECT_FALSE(check_mps_command(command)) << command;
  EXPECT_EQ(check_mps_command("quit\t-t").error().message,
            "'quit -t' is no command for MPS that gpuctld gives: get_server_list, get_client_list PID, "
            "terminate_client PID PID, each behind @NAME too, and @NAME quit");
}

TEST(MpsHelper, AnAnswerThatIsCutOffIsAnError) {
  for (const char* output : {"", "1\n", "ok\n", "failed: no\n", "1\n2\n"})
    EXPECT_EQ(from_mps_answer(to_mps_answer(std::string(output))).value(), output);
  EXPECT_EQ(from_mps_answer(to_mps_answer(std::string("1"))).value(), "1\n");
  EXPECT_EQ(to_mps_answer(fail("no\nMPS")), "failed: no MPS\n");
  EXPECT_EQ(from_mps_answer("failed: no MPS\n").error().message, "no MPS");
  for (const char* cut : {"", "1\n", "1\no", "1\nok", "look\n", "failed: no M"})
    EXPECT_EQ(from_mps_answer(cut).error().message, "the answer about MPS is missing or was cut off") << cut;
}

/// The exit status and the answer to what comes on the standard input.
std::pair<int, std::string> answer_to(const std::string& input) {
  int ends[2];
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  const ipc::UniqueFd ours(ends[0]);
  ipc::UniqueFd theirs(ends[1]);
  EXPECT_EQ(::write(ours.get(), input.data(), input.size()), static_cast<ssize_t>(input.size()));
  ::shutdown(ours.get(), SHUT_WR);
  const int status = answer_mps_command(theirs.get(), theirs.get());
  theirs.reset();
  std::string answer(4096, '\0');
  const ssize_t n = ::read(ours.get(), answer.data(), answer.size());
  answer.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
  return {status, answer};
}
using Answered = std::pair<int, std::string>;

TEST(MpsHelper, TheFirstLineIsDoneIfItIsAllowed) {
  FakeMpsControl fake;
  fake.serve();
  fake.write("servers", "10\n20\n");
  EXPECT_EQ(answer_to("get_server_list\nquit\n"), Answered(0, "10\n20\nok\n"));
  EXPECT_EQ(answer_to("get_server_list"), Answered(0, "10\n20\nok\n"));
  fake.write("clients.10", "1\n");
  EXPECT_EQ(answer_to("terminate_client 10 1\n"), Answered(0, "ok\n"));
  const std::string asked = fake.read("asked");
  EXPECT_EQ(asked, "get_server_list  \nget_server_list  \nterminate_client 10 1\n");
  for (const std::string& other : {std::string("quit\n"), std::string("\n"), std::string(), std::string(5000, 'x')}) {
    const auto [status, answer] = answer_to(other);
    EXPECT_EQ(status, 1);
    EXPECT_TRUE(answer.starts_with("failed: '") && answer.find('\n') == answer.size() - 1) << answer;
  }
  EXPECT_EQ(fake.read("asked"), asked);  // nothing of that came to MPS
}

TEST(MpsHelper, FailuresAreAnswersToo) {
  FakeMpsControl fake;
  fake.serve();
  fake.write("begin", "echo 'Cannot find MPS control daemon process' >&2; exit 1\n");
  EXPECT_EQ(answer_to("get_server_list\n"),
            Answered(1, "failed: " + fake.program() + ": exit status 1: Cannot find MPS control daemon process\n"));
  fake.write("nvidia-cuda-mps-control.pid", std::to_string(::getpid()));
  EXPECT_EQ(
      answer_to("get_server_list\n"),
      Answered(1, "failed: " + fake.directory() + ": no MPS serves there that root or this process's user started\n"));
}

/// A MpsControl, and at its socket what the service manager does for gpuctld-mps.socket.
class MpsBehindSocketTest : public testing::Test {
 protected:
  MpsBehindSocketTest() {
    fake_.serve();
    fake_.write("servers", "10\n");
    fake_.write("clients.10", "1\n2\n3\n");
    accept();
  }
  void accept() {
    acceptor_.async_accept([this](error_code error, Protocol::socket accepted) {
      if (error) return;
      const auto connection = std::make_shared<Protocol::socket>(std::move(accepted));
      connection->async_wait(Protocol::socket::wait_read, [this, connection](error_code) { serve(*connection); });
      accept();
    });
  }
  void serve(Protocol::socket& connection) {
    if (answers_) answer_mps_command(connection.native_handle(), connection.native_handle());
  }
  /// Asks for all of them, and runs the loop until each has an outcome.
  void ask(const std::vector<std::int32_t>& pids, const std::string& socket) {
    control_.terminate({.program = "/nowhere/control", .pipe_directory = "/nowhere", .socket = socket, .deadline = 60s},
                       pids, [this, pids](std::int32_t pid, const Outcome& outcome) {
                         outcomes_.emplace(pid, outcome);
                         if (outcomes_.size() == pids.size()) acceptor_.close();
                       });
    context_.run();
  }
  std::string socket() const { return fake_.directory() + "/mps"; }

  FakeMpsControl fake_;
  boost::asio::io_context context_{1};
  Protocol::acceptor acceptor_{context_, Protocol::endpoint(socket())};
  MpsControl control_{context_};
  bool answers_ = true;
  std::map<std::int32_t, Outcome> outcomes_;
};

TEST_F(MpsBehindSocketTest, ClientsAreTerminatedThroughIt) {
  ask({1, 3, 5}, socket());
  EXPECT_EQ(outcomes_.at(1).what, Outcome::terminated) << outcomes_.at(1).reason;
  EXPECT_EQ(outcomes_.at(3).what, Outcome::terminated);
  EXPECT_EQ(outcomes_.at(5).what, Outcome::not_listed);
  EXPECT_EQ(fake_.read("clients.10"), "2\n");
}

TEST_F(MpsBehindSocketTest, ARefusalSaysWhoMustRunAsWhom) {
  fake_.write("terminate", FakeMpsControl::kRefuses);
  ask({1}, socket());
  EXPECT_EQ(outcomes_.at(1).reason,
            "MPS was started by another user, and obeys that user and root alone: 'gpuctld --mps-control' behind " +
                socket() + " must run as one of them");
}

TEST_F(MpsBehindSocketTest, FailuresNameTheSocket) {
  fake_.write("begin", "echo broken; exit 3\n");
  ask({1}, socket());
  EXPECT_EQ(outcomes_.at(1).reason, socket() + ": " + fake_.program() + ": exit status 3: broken");
}

TEST_F(MpsBehindSocketTest, AnAnswerThatIsMissingIsAFailure) {
  answers_ = false;
  ask({1}, socket());
  EXPECT_EQ(outcomes_.at(1).what, Outcome::failed);
  EXPECT_NE(outcomes_.at(1).reason.find(socket()), std::string::npos) << outcomes_.at(1).reason;
}

TEST_F(MpsBehindSocketTest, WhereNobodyListensItSaysSo) {
  ask({1}, socket() + "-not-there");
  EXPECT_EQ(outcomes_.at(1).reason,
            "cannot give commands for MPS at " + socket() + "-not-there: No such file or directory");
}

TEST_F(MpsBehindSocketTest, APathThatIsTooLongIsAFailure) {
  const std::string path = "/" + std::string(200, 'x');
  ask({1}, path);
  EXPECT_EQ(outcomes_.at(1).reason, path + ": too long for the path of a socket");
}

TEST_F(MpsBehindSocketTest, StoppingHangsUp) {
  boost::asio::io_context other;  // whose loop never runs: the connection waits to be accepted
  Protocol::acceptor silent(other, Protocol::endpoint(socket() + "-silent"));
  acceptor_.close();
  control_.terminate({.program = "", .pipe_directory = "", .socket = socket() + "-silent", .deadline = 60s}, {1},
                     [](auto, const auto&) { FAIL(); });
  context_.poll();
  control_.stop();
  context_.restart();
  context_.run();  // returns, as nothing waits any more
}

}  // namespace
}  // namespace gpuctl::daemon
