// Slices that last: apply and save.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "gpuctl/testing/command_line_fixture.h"
#include "gpuctl/text/failure.h"

namespace gpuctl::cli {
namespace {

namespace fs = std::filesystem;

class Lasting : public CommandLine {
 protected:
  Lasting() {
    std::string pattern = testing::TempDir() + "gpuctl-lasting-XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
    ipc::Status status;
    status.config = config();
    daemon_.on("GetStatus", to_json(status));
    daemon_.on("NoteSaved", boost::json::object());
  }
  ~Lasting() override { fs::remove_all(directory_); }
  std::string config() const { return directory_ + "/gpuctl.toml"; }
  std::string drop_in(const std::string& name) const { return config() + ".d/" + name + ".toml"; }
  static std::string content(const std::string& file) {
    std::ifstream stream(file);
    return {std::istreambuf_iterator<char>(stream), {}};
  }
  std::string slices_file(const std::string& text) {
    std::ofstream(directory_ + "/slices.toml") << text;
    return directory_ + "/slices.toml";
  }
  std::string directory_;
};

TEST_F(Lasting, SaveWritesASliceWithThoseAboveIt) {
  ipc::Slice inner;
  inner.path = "batch/train";
  inner.memory_max = 1 << 30;
  slices_.push_back(inner);
  daemon_.on("ListSlices", {{"slices", to_json(slices_)}});
  const Ran ran = gpuctl({"save", "batch/train", "--config", config()});
  EXPECT_EQ(ran.err, "");
  EXPECT_EQ(ran.out, "written: " + drop_in("batch") + "\nwritten: " + drop_in("batch+train") + "\n");
  EXPECT_FALSE(fs::exists(drop_in("ls")));
  const std::string saved = content(drop_in("batch+train"));
  EXPECT_NE(saved.find("[slice.\"batch/train\"]\n"), std::string::npos) << saved;
  EXPECT_NE(saved.find("\nmax = \"unlimited\"\n"), std::string::npos) << saved;
  EXPECT_NE(saved.find("\nmemory_max = 1073741824\n"), std::string::npos) << saved;
  expect_error({"save", "no", "--config", config()}, kExitRefused,
               "slice 'no' does not exist; known: /, ls, batch, batch/train");
}

TEST_F(Lasting, SaveOfAllRemovesWhatIsGoneAndNothingElse) {
  ASSERT_EQ(gpuctl({"save", "--config", config()}).status, kExitOk);
  EXPECT_EQ(content(drop_in("+")).find("reserve"), std::string::npos);  // the root's is the GPU
  std::ofstream(drop_in("own")) << "[slice.own]\n";
  slices_.pop_back();
  daemon_.on("ListSlices", {{"slices", to_json(slices_)}});
  const Ran ran = gpuctl({"save", "--config", config(), "--json"});
  EXPECT_EQ(ran.err, "");
  EXPECT_NE(ran.out.find("\"removed\":[\"" + drop_in("batch") + "\"]"), std::string::npos) << ran.out;
  EXPECT_TRUE(fs::exists(drop_in("own")));
  EXPECT_TRUE(fs::exists(drop_in("ls")));
  EXPECT_FALSE(fs::exists(drop_in("batch")));
}

TEST_F(Lasting, SaveWritesNothingWhereAFileIsSomebodysOwn) {
  fs::create_directories(config() + ".d");
  std::ofstream(drop_in("batch")) << "[slice.batch]\n";
  expect_error({"save", "--config", config()}, kExitRefused,
               drop_in("batch") + ": was not written by \"gpuctl save\"; rename it or remove it first");
  for (const char* other : {"+", "ls"}) EXPECT_FALSE(fs::exists(drop_in(other))) << other;
}

TEST_F(Lasting, SaveOfAllLeavesOutSlicesThatGoWithTheirJobs) {
  for (const char* path : {"slurm", "slurm/job-12", "slurm/job-12/step-0", "batch/job-7", "job-3", "batch/job-x"}) {
    slices_.emplace_back();
    slices_.back().path = path;
  }
  daemon_.on("ListSlices", {{"slices", to_json(slices_)}});
  ASSERT_EQ(gpuctl({"save", "--config", config()}).err, "");
  for (const char* kept : {"slurm", "job-3", "batch+job-x"}) EXPECT_TRUE(fs::exists(drop_in(kept))) << kept;
  for (const char* gone : {"slurm+job-12", "slurm+job-12+step-0", "batch+job-7"})
    EXPECT_FALSE(fs::exists(drop_in(gone))) << gone;
  ASSERT_EQ(gpuctl({"save", "slurm/job-12", "--config", config()}).err, "");
  EXPECT_TRUE(fs::exists(drop_in("slurm+job-12"))) << "it was named";
}

TEST_F(Lasting, WhatIsMadeToLastIsSavedWhereTheDaemonReads) {
  daemon_.on("CreateSlice", boost::json::object());
  EXPECT_EQ(gpuctl({"create-slice", "batch", "--persist", "--config", config()}).err, "");
  EXPECT_TRUE(fs::exists(drop_in("batch")));
}

TEST_F(Lasting, TheDaemonIsToldWhenAllIsWritten) {
  daemon_.on("NoteSaved", [this](const boost::json::object&) {
    EXPECT_TRUE(fs::exists(drop_in("batch")));
    return std::vector{ipc::Reply{}};
  });
  for (const bool all : {true, false}) {
    EXPECT_EQ(gpuctl(all ? std::vector<std::string>{"save", "--config", config()}
                         : std::vector<std::string>{"save", "batch", "--config", config()})
                  .err,
              "");
    EXPECT_EQ(daemon_.calls().back().member(), "NoteSaved");
  }
  daemon_.refuse("NoteSaved", "InvalidValue",
                 {{"field", "configuration"}, {"reason", "x.toml:1:1: most: unknown key"}});
  expect_error({"save", "--config", config()}, kExitRefused,
               "the files are written, but not noted by gpuctld: configuration: x.toml:1:1: most: unknown key");
}

TEST_F(Lasting, SaveWritesOnlyWhereTheDaemonReads) {
  expect_error({"save", "--config", directory_ + "/other.toml"}, kExitUsage,
               "gpuctld at " + daemon_.socket() + " reads " + config() + "; name that file with --config");
  daemon_.on("GetStatus", to_json(ipc::Status()));
  const std::string none = "gpuctld at " + daemon_.socket() + " reads no configuration; start it with --config FILE";
  expect_error({"save", "--config", config()}, kExitUsage, none);
  expect_error({"create-slice", "ls", "--persist"}, kExitUsage, none);
  EXPECT_EQ(daemon_.asked("CreateSlice"), "") << "nothing is half done";
  EXPECT_FALSE(fs::exists(config() + ".d"));
}

TEST_F(Lasting, ApplySaysWhatChangesForWhom) {
  ipc::SliceSettings before, after;
  before.max = 5;
  before.memory_unlimited = true;
  after.max_unlimited = true;
  after.memory_max = 1 << 30;
  const std::vector<ipc::SliceDifference> changes{
      {"old", before, std::nullopt, 0}, {"new", std::nullopt, after, 0}, {"batch", before, after, 2}};
  daemon_.on("ApplySlices", {{"changes", to_json(changes)}});
  const std::string file = slices_file("[slice.batch]\n[slice.new]\nmemory_max = \"1G\"\n");
  const Ran tried = gpuctl({"apply", file, "--dry-run"});
  EXPECT_EQ(tried.err, "");
  EXPECT_EQ(tried.out,
            "would delete old\nwould create new: memory_max 1 GiB\n"
            "would change batch: max 5 -> none, memory_max none -> 1 GiB (2 programs)\n");
  EXPECT_EQ(daemon_.asked("ApplySlices"),
            R"({"slices":[{"path":"batch","settings":{}},{"path":"new","settings":{"memory_max":1073741824}}],)"
            R"("dry_run":true})");
  EXPECT_EQ(gpuctl({"apply", file}).out.substr(0, 12), "deleted old\n");
  daemon_.on("ApplySlices", {{"changes", boost::json::array()}});
  EXPECT_EQ(gpuctl({"apply", file}).out, "nothing to change\n");
  daemon_.refuse("ApplySlices", "io.gpuctl.SliceBusy", {{"path", "old"}, {"clients", 1}, {"children", 0}});
  const Ran refused = gpuctl({"apply", file});
  EXPECT_EQ(refused.status, kExitRefused);
  EXPECT_NE(refused.err.find("; nothing is changed\n"), std::string::npos) << refused.err;
}

TEST_F(Lasting, AFileWithMistakesIsNotSent) {
  const std::string file = slices_file("[slice.a]\nweight = 0\nmost = 1\n");
  const Ran ran = gpuctl({"apply", file});
  EXPECT_EQ(ran.status, kExitUsage);
  EXPECT_NE(ran.err.find(file + ":2:10: slice.\"a\".weight"), std::string::npos) << ran.err;
  EXPECT_NE(ran.err.find("gpuctl: apply: 2 mistakes in " + file + "; nothing is changed\n"), std::string::npos);
  EXPECT_TRUE(nothing_asked());
}

}  // namespace
}  // namespace gpuctl::cli
