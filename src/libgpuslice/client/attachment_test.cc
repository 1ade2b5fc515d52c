#include "libgpuslice/client/attachment.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>

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
  EXPECT_EQ(kept.parameters.at("queues"), 4);
  EXPECT_EQ(kept.parameters.at("resumed"), true);
}

TEST(Attachment, HasThePageAndTheDurations) {
  const gpuctl::Result<Attachment> read = read_attachment(answer(), page(), descriptors(), "");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->slice, "batch");
  EXPECT_EQ(read->targets.latency, std::chrono::microseconds(50));
  EXPECT_EQ(read->targets.block_task, std::chrono::microseconds(20));
  EXPECT_EQ(read->page->client_pid, 4711U);
}

TEST(Attachment, TakesAPageThatTheDaemonBeginsLater) {
  gpuctl::Result<ipc::NewStub> made = ipc::NewStub::create();
  ASSERT_TRUE(made);
  gpuctl::Result<ipc::StubMap> taken = read_page({}, one(ipc::UniqueFd(dup(made->fd.get()))));
  ASSERT_TRUE(taken) << taken.error().message;
  EXPECT_TRUE(made->is_sealed());
  EXPECT_NE(read_attachment(answer(), std::move(*taken), descriptors(), "").error().message.find("magic"),
            std::string::npos);
  EXPECT_EQ(read_page({}, {}).error().message, "gpuctld: MakePage: expected a file descriptor");
  EXPECT_EQ(read_page({.error = "io.gpuctl.NoGpu"}, {}).error().message, "gpuctld: io.gpuctl.NoGpu");
  EXPECT_TRUE(was_too_late({.error = "io.gpuctl.NoPage"}));
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
