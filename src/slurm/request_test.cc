#include "slurm/request.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

namespace gpuctl::slurm {
namespace {

Result<Request> taken(Option option, std::string_view value) {
  Request request;
  if (const auto done = take_option(option, value, request); !done) return done.error();
  return request;
}

TEST(SlurmRequest, TakesWhatSlurmPasses) {
  EXPECT_EQ(taken(Option::slice, "/batch/train/")->slice, "batch/train");
  EXPECT_EQ(taken(Option::sms, "40")->sms, 40);
  EXPECT_EQ(taken(Option::memory, "8G")->memory, std::int64_t{8} << 30);
  EXPECT_EQ(taken(Option::latency, "5ms")->latency, "5ms");
  EXPECT_TRUE(taken(Option::sms, "1")->any());
  EXPECT_FALSE(Request{}.any());
}

TEST(SlurmRequest, RefusesWhatIsNone) {
  for (const char* value : {"", "0", "-3", "4x", "1e9", "99999999"}) EXPECT_FALSE(taken(Option::sms, value)) << value;
  for (const char* value : {"", "0", "8Q", "none"}) EXPECT_FALSE(taken(Option::memory, value)) << value;
  for (const char* value : {"", "/"}) EXPECT_FALSE(taken(Option::slice, value)) << value;
  EXPECT_FALSE(taken(Option::latency, ""));
  EXPECT_EQ(taken(Option::sms, "many").error().message,
            "--gpu-sms: 'many' is not a number of SMs; give a whole number such as 40");
}

TEST(SlurmRequest, ArgumentsHaveDefaults) {
  const auto none = read_arguments({}, "n1");
  ASSERT_TRUE(none);
  EXPECT_EQ(none->socket, "/run/gpuctld/io.gpuctl");
  EXPECT_EQ(none->library, GPUCTL_LIBRARY);
  EXPECT_EQ(none->shards, 0);
  EXPECT_TRUE(none->slices.empty() && none->dcgm.empty() && !none->admin_comment);
}

TEST(SlurmRequest, ReadsArguments) {
  const auto all = read_arguments(
      {"socket=/run/%n/s", "library=/l.so", "shards=8", "slices=batch,,/ls/x/", "dcgm=/maps/%n", "admin-comment"},
      "n1");
  ASSERT_TRUE(all) << all.error().message;
  EXPECT_EQ(all->socket, "/run/n1/s");
  EXPECT_EQ(all->library, "/l.so");
  EXPECT_EQ(all->shards, 8);
  EXPECT_EQ(all->slices, (std::vector<std::string>{"batch", "ls/x"}));
  EXPECT_EQ(all->dcgm, "/maps/n1");
  EXPECT_TRUE(all->admin_comment);
}

TEST(SlurmRequest, RefusesOtherArguments) {
  for (const char* word : {"shards=0", "shards=many", "shards", "socket=", "colour=red", "admin-comment=1"})
    EXPECT_FALSE(read_arguments({word}, "n1")) << word;
  EXPECT_NE(read_arguments({"colour=red"}, "").error().message.find("there is no argument 'colour'"),
            std::string::npos);
}

TEST(SlurmRequest, TheManualHasEachOptionAndArgument) {
  std::ifstream stream(GPUCTL_SOURCE_ROOT "/man/gpuctl-slurm.8"), page(GPUCTL_SOURCE_ROOT "/docs/slurm.md");
  const std::string manual(std::istreambuf_iterator<char>(stream), {});
  const std::string text(std::istreambuf_iterator<char>(page), {});
  for (const OptionRow& row : kOptions)
    EXPECT_NE(manual.find(".It Fl -" + std::string(row.name) + " Ns = Ns Ar"), std::string::npos) << row.name;
  for (const char* name : {"socket", "library", "shards", "slices", "dcgm", "admin-comment"}) {
    EXPECT_NE(manual.find(".It Cm " + std::string(name)), std::string::npos) << name;
    EXPECT_NE(text.find("| `" + std::string(name)), std::string::npos) << name;
  }
}

}  // namespace
}  // namespace gpuctl::slurm
