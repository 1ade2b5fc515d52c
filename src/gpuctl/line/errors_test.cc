// What wrong command lines, and a daemon that refuses or is not there, print, and with which status they end.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <streambuf>

#include "gpuctl/testing/command_line_fixture.h"
#include "gpuctl/text/failure.h"

namespace gpuctl::cli {
namespace {

using std::string_literals::operator""s;

TEST_F(CommandLine, RefusalsOfTheDaemonExitWithOne) {
  daemon_.refuse("CreateSlice", "ReserveDoesNotFit", {{"path", "ls"}, {"asked", 200}, {"available", 124}});
  expect_error({"create-slice", "ls", "--reserve", "200"}, kExitRefused,
               "reserve: 'ls' asks for 200 SMs and its parent can give 124");
  daemon_.refuse("DeleteSlice", "NoSuchSlice", {{"path", "bacth"}});
  expect_error({"delete-slice", "bacth"}, kExitRefused, "slice 'bacth' does not exist; did you mean 'batch'?");
  daemon_.refuse("DeleteSlice", "NoSuchSlice", {{"path", "training"}});
  expect_error({"delete-slice", "training"}, kExitRefused, "slice 'training' does not exist; known: /, ls, batch");
  daemon_.refuse("SetSlice", "InvalidValue", {{"field", "policy"}, {"reason", "must be one of: share"}});
  expect_error({"set", "ls", "policy=fair"}, kExitRefused, "policy: must be one of: share");
}

TEST_F(CommandLine, UsageErrorsExitWithTwoAndAskNothing) {
  EXPECT_EQ(gpuctl({}).status, kExitUsage);
  EXPECT_EQ(gpuctl({}).err.rfind("gpuctl: which verb? One of create-slice, delete-slice, set, ", 0), 0u);
  expect_error({"set", "batch", "--max", "4"}, kExitUsage, "set: a setting is written max=VALUE, not --max");
  expect_error({"lst"}, kExitUsage, "there is no verb 'lst'; did you mean 'list'?");
  expect_error({"fooooo"}, kExitUsage, "there is no verb 'fooooo'; 'gpuctl --help' names all");
  expect_error({"--jsn", "list"}, kExitUsage, "unknown option '--jsn'; did you mean '--json'?");
  expect_error({"list", "--jsn"}, kExitUsage, "list: unknown option '--jsn'; did you mean '--json'?");
  expect_error({"list", "all"}, kExitUsage, "list: unexpected argument 'all'; see 'gpuctl list --help'");
  expect_error({"create-slice"}, kExitUsage, "create-slice: NAME is required; see 'gpuctl create-slice --help'");
  expect_error({"create-slice", ""}, kExitUsage,
               "the name of the slice is empty; give one such as 'batch', or '/' for the root");
  expect_error({"create-slice", "ls", "--reserve"}, kExitUsage, "create-slice: --reserve needs a value: --reserve N");
  expect_error({"create-slice", "ls", "--reserve", "many"}, kExitUsage,
               "--reserve: 'many' is not a number of SMs; give a whole number such as 8");
  expect_error({"create-slice", "ls", "--max", "1", "--max", "2"}, kExitUsage,
               "create-slice: --max is given twice; give it once");
  expect_error({"help"}, kExitUsage, "there is no verb 'help'; write 'gpuctl --help' or 'gpuctl VERB --help'");
  expect_error({"simulate", "w.toml", "--policy", "rr", "--seeds", "0"}, kExitUsage,
               "--seeds: '0' is not a whole number from 1 to 1000000");
  expect_error({"set", "ls"}, kExitUsage, "set: SETTING is required; see 'gpuctl set --help'");
  expect_error({"set", "ls", "max"}, kExitUsage, "'max' is not KEY=VALUE; write for example max=40");
  expect_error({"show"}, kExitUsage, "show: give the name of a slice, or --kernels");
  expect_error({"show", "--fairness"}, kExitUsage, "show: give the name of a slice, or --kernels");
  expect_error({"show", "--fairness", "--kernels"}, kExitUsage, "show: give --kernels or --fairness, not both");
  expect_error({"explain", "ls"}, kExitUsage,
               "PID: 'ls' is not a process id; 'gpuctl top --once' shows those of the attached programs");
  expect_error({"kill"}, kExitUsage, "kill: PID|SLICE is required; see 'gpuctl kill --help'");
  expect_error({"kill", "0"}, kExitUsage, "kill: '0' is not a process id");
  expect_error({"kill", "7", "--timeout", "1h"}, kExitUsage,
               "--timeout: '1h' is not a number of milliseconds from 0 to 60000");
  expect_error({"top", "--interval", "0"}, kExitUsage, "--interval: '0' is not a number of seconds from 0.1 to 60");
  EXPECT_TRUE(nothing_asked());
}

/// As a disk that is full.
struct TakesNothing : std::streambuf {};

TEST_F(CommandLine, OutputThatCannotBeWrittenExitsWithOne) {
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"list"}, {"list", "--json"}, {"--help"}, {"--version"}, {"set", "--help"}}) {
    TakesNothing buffer;
    std::ostream out(&buffer);
    std::ostringstream err;
    std::vector<std::string> arguments{"--socket", daemon_.socket()};
    arguments.insert(arguments.end(), words.begin(), words.end());
    EXPECT_EQ(run_command_line(arguments, out, err), kExitRefused) << words.back();
    const std::string said = err.str();
    EXPECT_EQ(said.rfind("gpuctl: the output cannot be written", 0), 0u) << said;
    EXPECT_EQ(said.find('\n'), said.size() - 1) << said;
  }
}

TEST(CommandLineAlone, AFullDiskIsSaid) {
  const std::string said = testing::TempDir() + "gpuctl-full-" + std::to_string(::getpid());
  const int status = std::system((GPUCTL_EXECUTABLE " --help >/dev/full 2>" + said).c_str());
  EXPECT_EQ(WEXITSTATUS(status), kExitRefused);
  std::ostringstream text;
  text << std::ifstream(said).rdbuf();
  EXPECT_EQ(text.str(), "gpuctl: the output cannot be written: No space left on device\n");
  std::filesystem::remove(said);
}

TEST_F(CommandLine, RunFailuresExitWith125) {
  expect_error({"run", "--slice", "ls"}, kExitRunFailed,
               "run: no program given; write gpuctl run --slice NAME PROGRAM ARGUMENTS");
  expect_error({"run", "--slcie", "ls", "true"}, kExitRunFailed,
               "run: unknown option '--slcie'; did you mean '--slice'?");
}

TEST(CommandLineAlone, RewriteFailsInOneLine) {
  const Ran missing = run({"rewrite", "/nonexistent/k.ptx"});
  EXPECT_EQ(missing.status, kExitUsage);
  EXPECT_EQ(missing.err, "gpuctl: rewrite: /nonexistent/k.ptx: cannot be read: No such file or directory\n");
  EXPECT_EQ(missing.out, "");
  const Ran nothing = run({"rewrite"});
  EXPECT_EQ(nothing.err, "gpuctl: rewrite: IN is required; see 'gpuctl rewrite --help'\n");
  const std::string path = PTX_GOLDEN_DIR "/wrap_in_claim_loop/plain.ptx";
  const Ran unwritable = run({"rewrite", path, "-o", "/nonexistent/out.ptx"});
  EXPECT_EQ(unwritable.err, "gpuctl: rewrite: /nonexistent/out.ptx: cannot be written: No such file or directory\n");
  EXPECT_EQ(unwritable.out, "");
}

TEST(CommandLineAlone, UnreachableDaemonExitsWithThree) {
  const Ran ran = run({"list", "--socket", "/nonexistent/s"});
  EXPECT_EQ(ran.status, kExitUnreachable);
  EXPECT_EQ(ran.err,
            "gpuctl: cannot connect to /nonexistent/s: No such file or directory (is gpuctld running?); "
            "to start it: gpuctld --socket /nonexistent/s (without a GPU: --software-gpu)\n");
}

TEST_F(CommandLine, NonsenseFromTheDaemonExitsWithThree) {
  daemon_.on("ListSlices", {{"slices", 5}});
  expect_error({"list"}, kExitUnreachable,
               "the daemon's reply is not understood: field 'slices' must be an array, not an integer");
  daemon_.answer_with_bytes("hello\0"s);
  expect_error({"list"}, kExitUnreachable,
               "gpuctld at " + daemon_.socket() + ": message is not valid JSON: syntax error");
}

}  // namespace
}  // namespace gpuctl::cli
