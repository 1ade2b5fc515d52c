#include "gpuctld/manager/without_gpu.h"

#include <gtest/gtest.h>

#include <boost/asio/post.hpp>
#include <boost/json.hpp>
#include <filesystem>
#include <thread>

#include "gpuctld/protocol/listen_socket.h"
#include "ipc/connection.h"

namespace gpuctl::daemon {
namespace {

TEST(WithoutGpu, EveryMethodButGetStatusSaysWhy) {
  std::string directory = testing::TempDir() + "gpuctld-XXXXXX";
  ASSERT_NE(::mkdtemp(directory.data()), nullptr);
  const std::string path = directory + "/s";
  boost::asio::io_context context(1);
  WithoutGpu without(context, listen_at(path, 0600, std::nullopt).value().release(), 0, "it is broken");
  std::thread thread([&] { context.run(); });
  {
    auto connection = ipc::Connection::open(path).value();
    const auto call = [&](const std::string& method, boost::json::object parameters = {}) {
      return connection.call({.method = method, .parameters = std::move(parameters)}).value();
    };
    for (const char* method : {"ListSlices", "CreateSlice", "Attach", "Monitor", "Nothing"}) {
      const auto reply = call(std::string("io.gpuctl.") + method, {{"slice", "/"}});
      EXPECT_EQ(reply.error, "io.gpuctl.NoGpu") << method;
      EXPECT_EQ(reply.parameters.at("reason"), "it is broken");
    }
    const auto status = call("io.gpuctl.GetStatus");
    EXPECT_EQ(status.error, "");
    EXPECT_TRUE(status.parameters.at("devices").as_array().empty());
    EXPECT_EQ(status.parameters.at("notes").at(0), "no GPU is managed: it is broken");
    EXPECT_EQ(call("org.varlink.service.GetInfo").parameters.at("product"), "gpuctld");
  }
  boost::asio::post(context, [&] { without.stop(); });
  thread.join();
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace gpuctl::daemon
