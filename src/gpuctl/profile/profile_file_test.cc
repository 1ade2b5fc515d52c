#include "gpuctl/profile/profile_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace gpuctl::cli {
namespace {

Profile example() {
  ipc::KernelProfile kernel{
      .name = "k<\"x\">", .module = "m", .inputs = {{.alone_us = 2}}, .curve = {{.block_task_us = 1}}};
  return {.gpu = "GPU", .sms = 8, .kernels = {kernel, kernel}};
}

std::string said(const std::string& text) {
  const auto read = parse_profile(text, "p.json");
  return read ? "nothing" : read.error().message;
}

/// What is said of the example with `text` in place of `part`.
std::string said_with(const std::string& part, const std::string& text) {
  std::string whole = to_text(example());
  const std::size_t at = whole.find(part);
  EXPECT_NE(at, std::string::npos) << part << " in " << whole;
  return said(whole.replace(at, part.size(), text));
}

TEST(ProfileFile, IsReadAsItWasWritten) {
  const auto read = parse_profile(to_text(example()), "p.json");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(to_text(*read), to_text(example()));
  EXPECT_EQ(read->kernels.size(), 2u);
  EXPECT_EQ(read->kernels[1].name, "k<\"x\">");
}

TEST(ProfileFile, SaysWhereItIsWrong) {
  EXPECT_EQ(said("{\"version\": 1,\n\"gpu\" 7}").rfind("p.json:2:", 0), 0u) << said("{\"version\": 1,\n\"gpu\" 7}");
  EXPECT_EQ(said("").rfind("p.json:1:1: is not JSON", 0), 0u) << said("");
  EXPECT_EQ(said("[]"), "p.json: is not a profile: not a JSON object");
  EXPECT_NE(said(to_text(example()) + "{}").find("something follows the profile"), std::string::npos);
  EXPECT_EQ(said("{}"), "p.json: field 'version' is missing");
  EXPECT_EQ(said_with("\"version\": 1", "\"version\": 2"), "p.json: field 'version' is 2; this gpuctl reads 1");
  EXPECT_EQ(said_with("\"sms\": 8", "\"sms\": 0"), "p.json: field 'sms' is 0 and must be at least 1");
  EXPECT_EQ(said_with("\"blocks\":1", "\"blocks\":-1"),
            "p.json: field 'kernels[0].inputs[0].blocks' is -1 and must be at least 1");
  EXPECT_EQ(said_with("\"gpu\"", "\"card\""), "p.json: field 'gpu' is missing");
  EXPECT_EQ(said_with("\"gpu\"", "\"x\": 1, \"gpu\""), "p.json: field 'x' is not known here");
}

class ProfileOnDisk : public testing::Test {
 protected:
  ProfileOnDisk() {
    char name[] = "/tmp/gpuctl-profile-XXXXXX";
    directory_ = ::mkdtemp(name);
    file_ = directory_ / "p.json";
  }
  ~ProfileOnDisk() override { std::filesystem::remove_all(directory_); }
  std::filesystem::path directory_, file_;
};

TEST_F(ProfileOnDisk, IsWrittenAsAWhole) {
  ASSERT_TRUE(write_profile(file_, example()));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory_), {}), 1);
  EXPECT_TRUE(read_profile(file_));
  const auto failed = write_profile(directory_ / "no/p.json", example());
  ASSERT_FALSE(failed);
  EXPECT_NE(failed.error().message.find("no/p.json.unfinished: cannot be written: No such"), std::string::npos);
  EXPECT_EQ(read_profile(directory_).error().message, directory_.string() + ": is not a regular file");
}

TEST_F(ProfileOnDisk, SaysBeforehandWhetherItCanBeWritten) {
  EXPECT_TRUE(may_be_written(file_));
  const std::string nowhere = directory_ / "no/p.json";
  EXPECT_EQ(may_be_written(nowhere).error().message, nowhere + ": cannot be written: No such file or directory");
  EXPECT_EQ(may_be_written(directory_).error().message, directory_.string() + ": is a directory");
}

TEST_F(ProfileOnDisk, IsTaughtOnlyIfNobodyElseCanHaveWrittenIt) {
  ASSERT_TRUE(write_profile(file_, example()));
  ASSERT_EQ(::chmod(file_.c_str(), 0644), 0);
  EXPECT_TRUE(check_writers(file_, ::geteuid()));
  EXPECT_EQ(check_writers(file_, ::geteuid() + 1).has_value(), ::geteuid() == 0) << "root's word counts for all";
  ASSERT_EQ(::chmod(file_.c_str(), 0664), 0);
  EXPECT_NE(check_writers(file_, ::geteuid()).error().message.find("others may write to it"), std::string::npos);
  if (::geteuid() != 0) return;
  ASSERT_EQ(::chmod(file_.c_str(), 0644), 0);
  ASSERT_EQ(::chown(file_.c_str(), 65534, 65534), 0);
  EXPECT_NE(check_writers(file_, 0).error().message.find("belongs to another user"), std::string::npos);
  EXPECT_TRUE(check_writers(file_, 65534));
}

}  // namespace
}  // namespace gpuctl::cli
