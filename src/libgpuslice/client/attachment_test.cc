#include "libgpuslice/client/attachment.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <filesystem>
#include <memory>

#include "ipc/testing/pass_along.h"

namespace gpuslice {
namespace {

namespace ipc = gpuctl::ipc;

std::vector<ipc::UniqueFd> one(ipc::UniqueFd fd) {
  std::vector<ipc::UniqueFd> fds;
  fds.push_back(std::move(fd));
  return fds;
}

/// What comes with an answer: a wake-up.
std::vector<ipc::UniqueFd> descriptors(int flags = EFD_NONBLOCK) {
  return one(ipc::UniqueFd(eventfd(0, EFD_CLOEXEC | flags)));
}

/// That the daemon has begun.
ipc::StubMap page() {
  return std::move(ipc::NewStub::create(1, 4711)->map);
}

ipc::Reply answer() {
  return {.parameters = {{"slice", "batch"}, {"latency_target_us", 50}, {"block_target_us", 20}}};
}

std::string why(const ipc::Reply& reply, std::vector<ipc::UniqueFd> fds = descriptors()) {
  const gpuctl::Result<Attachment> read = read_attachment(reply, page(), std::move(fds), "batch");
  return read ? "" : read.error().message;
}

TEST(Attachment, IsAskedForWithWhatTheProgramKnows) {
  const ipc::Call plain = attach_call({.slice = "batch", .device_uuids = {"GPU-1"}}, false);
  EXPECT_EQ(plain.method, "io.gpuctl.Attach");
  EXPECT_EQ(plain.parameters.at("slice"), "batch");
  EXPECT_EQ(plain.parameters.at("device_uuids"), boost::json::array{"GPU-1"});
  EXPECT_FALSE(plain.parameters.contains("mps_sms") || plain.parameters.contains("queues"));
  const ipc::Call kept = attach_call({.slice = "batch", .device_uuids = {}, .mps_sms = {98}, .queues = 4}, true);
  EXPECT_EQ(kept.parameters.at("mps_sms"), boost::json::array{98});
  EXPECT_FALSE(kept.parameters.contains("isolated"));
  EXPECT_EQ(attach_call({.slice = "ls", .device_uuids = {}, .isolated = true}, true).parameters.at("isolated"), true);
  EXPECT_FALSE(kept.parameters.contains("exe"));
  EXPECT_EQ(attach_call({.exe = "/usr/bin/a"}, false).parameters.at("exe"), "/usr/bin/a");
  EXPECT_EQ(kept.parameters.at("queues"), 4);
  EXPECT_EQ(kept.parameters.at("resumed"), true);
}

TEST(Attachment, SaysWhichFileTheProgramRuns) {
  EXPECT_EQ(own_exe(), std::filesystem::read_symlink("/proc/self/exe"));
}

TEST(Attachment, HasThePageAndTheDurations) {
  const gpuctl::Result<Attachment> read = read_attachment(answer(), page(), descriptors(), "");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->slice, "batch");
  EXPECT_EQ(read->targets.latency, std::chrono::microseconds(50));
  EXPECT_EQ(read->targets.block_task, std::chrono::microseconds(20));
  EXPECT_EQ(read->page->client_pid, 4711U);
}

/// A connection on which a daemon has answered already.
class Answering {
 public:
  Answering() {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    client = std::make_unique<ipc::Connection>(ipc::UniqueFd(ends[0]));
    daemon_.reset(ends[1]);
  }
  /// `fd`: goes with it.
  void says(const ipc::Reply& reply, int fd = -1) {
    const std::string bytes = ipc::encode(reply);
    const ssize_t sent =
        fd < 0 ? send(daemon_.get(), bytes.data(), bytes.size(), 0) : ipc::pass_along(daemon_.get(), bytes, fd);
    EXPECT_EQ(sent, std::ssize(bytes));
  }
  gpuctl::Result<Answered> call() {
    return call_with_page(*client, {.method = "io.gpuctl.Attach", .parameters = {}}, std::chrono::seconds(1));
  }
  std::string why() {
    const gpuctl::Result<Answered> answered = call();
    return answered ? "" : answered.error().message;
  }

  std::unique_ptr<ipc::Connection> client;

 private:
  ipc::UniqueFd daemon_;
};

TEST(Attachment, HasAnotherPageMadeIfItWasTooLateWithTheFirst) {
  const ipc::NewStub late = std::move(ipc::NewStub::create().value()), page = std::move(ipc::NewStub::create().value());
  Answering daemon;
  daemon.says({}, late.fd.get());
  daemon.says({.error = "io.gpuctl.NoPage"});
  daemon.says({}, page.fd.get());
  daemon.says(answer());
  gpuctl::Result<Answered> answered = daemon.call();
  ASSERT_TRUE(answered) << answered.error().message;
  EXPECT_TRUE(late.is_sealed());
  EXPECT_TRUE(page.is_sealed());
  ipc::store(page.map->grant[0].polled.capsm, 7u);
  EXPECT_EQ(ipc::load(answered->page->grant[0].polled.capsm), 7u);
  EXPECT_NE(
      read_attachment(answered->reply, std::move(answered->page), descriptors(), "").error().message.find("magic"),
      std::string::npos)
      << "the daemon begins it";
}

TEST(Attachment, SaysWhyThereIsNoPage) {
  const auto why_after = [](const ipc::Reply& reply, int fd) {
    Answering daemon;
    daemon.says(reply, fd);
    return daemon.why();
  };
  EXPECT_EQ(why_after({}, -1), "gpuctld: MakePage: expected a file descriptor");
  EXPECT_EQ(why_after({}, STDIN_FILENO), "stub page: wrong size of the file");
  Answering refuses;
  refuses.says({.error = "io.gpuctl.NoGpu"});
  EXPECT_EQ(refuses.call()->reply.error, "io.gpuctl.NoGpu");
}

TEST(Attachment, SaysWhatIsWrongWithAnAnswer) {
  EXPECT_EQ(why({.error = "io.gpuctl.NoSuchSlice"}), "gpuctld: io.gpuctl.NoSuchSlice: slice 'batch'");
  EXPECT_NE(why({.parameters = {{"daemon", 7}}, .error = "io.gpuctl.OtherVersion"}).find("gpuctld has 7"),
            std::string::npos);
  EXPECT_EQ(why(answer(), {}), "gpuctld: Attach: expected a file descriptor");
  EXPECT_EQ(why(answer(), descriptors(0)), "gpuctld: Attach: a wake-up could block the program");
  ipc::Reply without = answer();
  without.parameters.erase("slice");
  EXPECT_NE(why(without), "");
}

TEST(Attachment, KnowsWhichFieldAnOlderDaemonRefuses) {
  const ipc::Reply refused{.parameters = {{"field", "mps_sms[0]"}}, .error = "io.gpuctl.InvalidValue"};
  EXPECT_TRUE(refuses(refused, "mps_sms"));
  EXPECT_FALSE(refuses(refused, "queues"));
  EXPECT_FALSE(refuses({.parameters = {{"field", "queues"}}, .error = "io.gpuctl.NoGpu"}, "queues"));
}

}  // namespace
}  // namespace gpuslice
