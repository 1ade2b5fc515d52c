// Whole command lines against a daemon of the test's own: what is sent, what is printed, and what errors say.
#include "gpuctl/line/command_line.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <boost/json/parse.hpp>
#include <sstream>

#include "gpuctl/line/verb.h"
#include "gpuctl/testing/fake_daemon.h"
#include "gpuctl/text/failure.h"
#include "ipc/codec.h"

namespace gpuctl::cli {
namespace {

using std::string_literals::operator""s;

struct Ran {
  int status;
  std::string out;
  std::string err;
};

Ran run(const std::vector<std::string>& arguments) {
  std::ostringstream out, err;
  const int status = run_command_line(arguments, out, err);
  return {status, out.str(), err.str()};
}

class CommandLine : public testing::Test {
 protected:
  CommandLine() {
    ipc::Slice ls;
    ls.path = "ls";
    ls.reserve = 8;
    ipc::Slice batch;
    batch.path = "batch";
    batch.max = 100;
    ipc::Slice root;
    root.path = "/";
    slices_ = {root, ls, batch};
    daemon_.on("ListSlices", {{"slices", to_json(slices_)}});
    daemon_.on("CreateSlice", {{"slice", to_json(ls)}});
    daemon_.on("SetSlice", {{"slice", to_json(ls)}});
    daemon_.on("DeleteSlice", boost::json::object());
  }

  Ran gpuctl(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"--socket", daemon_.socket()});
    return run(arguments);
  }
  /// Expects a failure with exactly this one line.
  void expect_error(std::vector<std::string> arguments, int status, const std::string& line) {
    const Ran ran = gpuctl(std::move(arguments));
    EXPECT_EQ(ran.err, "gpuctl: " + line + "\n");
    EXPECT_EQ(ran.status, status);
    EXPECT_EQ(ran.out, "");
  }
  bool nothing_asked() { return daemon_.calls().empty(); }

  FakeDaemon daemon_;
  std::vector<ipc::Slice> slices_;
};

TEST_F(CommandLine, CreateSliceSendsOnlyWhatWasGiven) {
  const Ran ran = gpuctl({"create-slice", "ls", "--reserve", "8"});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_EQ(ran.out, "");
  EXPECT_EQ(daemon_.asked("CreateSlice"), R"({"path":"ls","settings":{"reserve":8}})");
  gpuctl({"create-slice", "/batch", "--max=none", "--weight", "50", "--priority", "-5", "--memory-max", "2G",
          "--reserve-mode", "lend", "--policy", "share", "--owner", "0:0"});
  EXPECT_EQ(daemon_.asked("CreateSlice"),
            R"({"path":"batch","settings":{"reserve_mode":"lend","max_unlimited":true,"weight":50,"priority":-5,)"
            R"("memory_max":2147483648,"policy":"share","owner_uid":0,"owner_gid":0}})");
}

TEST_F(CommandLine, JsonIsTheReply) {
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {"create-slice", "ls", "--json"}, {"--json", "create-slice", "ls"}, {"set", "ls", "max=4", "--json"}}) {
    const Ran ran = gpuctl(arguments);
    EXPECT_EQ(boost::json::parse(ran.out).at("slice").at("path"), "ls");
    EXPECT_EQ(ran.out.find('\n'), ran.out.size() - 1);
  }
  EXPECT_EQ(boost::json::parse(gpuctl({"list", "--json"}).out).at("slices").as_array().size(), 3u);
  EXPECT_EQ(gpuctl({"delete-slice", "ls", "--json"}).out, "{}\n");
}

TEST_F(CommandLine, SetSendsAssignments) {
  EXPECT_EQ(gpuctl({"set", "batch", "max=40", "priority=-1"}).status, 0);
  EXPECT_EQ(daemon_.asked("SetSlice"), R"({"path":"batch","settings":{"max":40,"priority":-1}})");
  EXPECT_EQ(gpuctl({"set", "/", "policy=share"}).status, 0);
  EXPECT_EQ(daemon_.asked("SetSlice"), R"({"path":"/","settings":{"policy":"share"}})");
}

TEST_F(CommandLine, SetSaysWhomMpsKeepsToAnEarlierMax) {
  ipc::ClientUsage kept;
  kept.mps_sms = 98;
  const std::vector<ipc::Client> clients{{42, 0, "./a", "batch", "running", {kept}},
                                         {43, 0, "./b", "batch", "running", {{}}},
                                         {44, 0, "./c", "ls", "running", {kept}}};
  daemon_.on("ListClients", {{"clients", to_json(clients)}});
  ipc::Slice batch = slices_[2];
  const auto said = [&](std::optional<std::int64_t> max) {
    batch.max = max;
    daemon_.on("ListSlices", {{"slices", to_json(std::vector{slices_[0], slices_[1], batch})}});
    return gpuctl({"set", "batch", "max=" + (max ? std::to_string(*max) : "none")}).out;
  };
  const std::string note =
      "note: MPS keeps 1 program in batch to the earlier max until started again (limits_by_mps in gpuctl.toml(5))\n";
  EXPECT_EQ(said(std::nullopt), note);
  EXPECT_EQ(said(120), note);
  EXPECT_EQ(said(99), "") << "98 are all pairs of 99";
  EXPECT_EQ(said(50), "") << "gpuctl keeps it to these";
  batch.effective_max = 99;
  EXPECT_EQ(said(120), "") << "slices above allow no more";
  EXPECT_EQ(gpuctl({"set", "batch", "priority=3"}).out, "");
}

TEST_F(CommandLine, SetCountsProgramsOfSlicesBelowThatMpsKeeps) {
  ipc::ClientUsage kept;
  kept.mps_sms = 98;
  const std::vector<ipc::Client> clients{{42, 0, "./a", "batch/deep/er", "running", {kept}},
                                         {43, 0, "./b", "batch/own", "running", {kept}},
                                         {44, 0, "./c", "batch-2", "running", {kept}},
                                         {45, 0, "./d", "batch", "running", {kept}}};
  ipc::Slice batch = slices_[2], deep, own, other;
  batch.max = deep.effective_max = 120;
  deep.path = "batch/deep/er";
  own.path = "batch/own";
  own.max = 98;
  other.path = "batch-2";
  daemon_.on("ListSlices", {{"slices", to_json(std::vector{slices_[0], batch, deep, own, other})}});
  daemon_.on("ListClients", {{"clients", to_json(clients)}});
  EXPECT_EQ(gpuctl({"set", "batch", "max=120"}).out,
            "note: MPS keeps 2 programs in batch to the earlier max until started again "
            "(limits_by_mps in gpuctl.toml(5))\n");
}

TEST_F(CommandLine, ListPrintsTheTree) {
  const Ran ran = gpuctl({"list"});
  EXPECT_EQ(ran.out.substr(0, ran.out.find('\n')),
            "SLICE    RESERVE  MAX  WEIGHT  PRIORITY  POLICY  OWNER  GRANTED  DEMAND  CLIENTS");
  EXPECT_NE(ran.out.find("\n  batch        -  100 "), std::string::npos) << ran.out;
}

TEST_F(CommandLine, ShowTellsEverythingOfASlice) {
  ipc::ClientUsage usage;
  usage.launches = 12400;
  usage.granted = 8;
  usage.memory = 3 << 20;
  slices_[2].faults = 2;
  daemon_.on("GetSlice",
             {{"slice", to_json(slices_[2])},
              {"clients", to_json(std::vector<ipc::Client>{{42, 0, "./a b", "batch", "running", {usage}}})}});
  const Ran ran = gpuctl({"show", "batch"});
  EXPECT_EQ(ran.out,
            "slice         batch\n"
            "reserve       none\n"
            "max           100 SMs\n"
            "weight        100\n"
            "priority      0\n"
            "memory max    none\n"
            "policy        share (side by side: reserves first, the rest by weight up to max and demand)\n"
            "owner         root\n"
            "granted       0 SMs of 0 wanted\n"
            "clients       0\n"
            "faults        2\n"
            "\n"
            "PID  USER  GPU  STATE    GRANTED  HOLDING  DEMAND  MEMORY  LAUNCHES  EVICTIONS  EVICT MEAN  EVICT MAX  "
            "COMMAND\n"
            " 42  root    0  running        8        0       0   3 MiB     12.4k          0           -          -  "
            "./a b\n");
}

TEST_F(CommandLine, KillNamesAProgramOrASlice) {
  const ipc::EndedClient a{42, "./a b", "batch", "not active", {"SIGTERM"}, true};
  const ipc::EndedClient b{43, "./b", "batch/x", "terminated", {"SIGTERM", "SIGKILL"}, true};
  daemon_.on("Kill", {{"clients", to_json(std::vector{a, b})}});
  const Ran ran = gpuctl({"kill", "batch"});
  EXPECT_EQ(ran.status, kExitOk) << ran.err;
  EXPECT_EQ(ran.out,
            "42  ./a b  in slice batch: ended after SIGTERM\n"
            "43  ./b  in slice batch/x: ended after SIGTERM and SIGKILL; its work on the GPU was terminated before\n");
  EXPECT_EQ(daemon_.asked("Kill"), R"({"slice":"batch"})");
  gpuctl({"kill", "42", "--signal", "int", "--timeout", "0"});
  EXPECT_EQ(daemon_.asked("Kill"), R"({"pid":42,"signal":"int","timeout_ms":0})");
  gpuctl({"kill", "/42/"});
  EXPECT_EQ(daemon_.asked("Kill"), R"({"slice":"42"})");
  EXPECT_EQ(boost::json::parse(gpuctl({"kill", "/", "--json"}).out).at("clients").at(1).at("pid"), 43);
}

TEST_F(CommandLine, KillSaysWhatIsStillThereAndWhatFailed) {
  const ipc::EndedClient stuck{42, "./a", "batch", "no answer\nat all", {"SIGKILL"}, false};
  daemon_.on("Kill", {{"clients", to_json(std::vector{stuck})}});
  const Ran ran = gpuctl({"kill", "42"});
  EXPECT_EQ(ran.status, kExitRefused);
  EXPECT_EQ(ran.out.rfind("42  ./a  in slice batch: still there after SIGKILL; its work on the GPU was not terminated "
                          "before: no answer",
                          0),
            0u)
      << ran.out;
  EXPECT_EQ(std::count(ran.out.begin(), ran.out.end(), '\n'), 1);
  daemon_.on("Kill", {{"clients", boost::json::array()}});
  EXPECT_EQ(gpuctl({"kill", "ls"}).out, "no programs are in slice ls\n");
  daemon_.refuse("Kill", "NoSuchClient", {{"pid", 7}});
  expect_error({"kill", "7"}, kExitRefused, "process 7 is not attached to a slice");
  daemon_.refuse("Kill", "NoSuchSlice", {{"path", "bacth"}});
  expect_error({"kill", "bacth"}, kExitRefused, "slice 'bacth' does not exist; did you mean 'batch'?");
  daemon_.refuse("Kill", "InvalidValue", {{"field", "signal"}, {"reason", "must be TERM"}});
  expect_error({"kill", "7", "--signal", "STOP"}, kExitRefused, "signal: must be TERM");
}

TEST_F(CommandLine, StatusAndExplain) {
  daemon_.on(
      "GetStatus",
      to_json(ipc::Status{"0.1.0", {{0, "H200", "GPU-1", "cuda", 132, 139LL << 30, "mps"}}, 3, 1, 7500, {"no MPS"}}));
  EXPECT_EQ(gpuctl({"status"}).out, "gpuctld 0.1.0 at " + daemon_.socket() +
                                        ", up 2 h 5 min, 3 slices, 1 client\n\n"
                                        "GPU  NAME  KIND  MODE  SMS   MEMORY  UUID\n"
                                        "  0  H200  cuda  mps   132  139 GiB  GPU-1\n\n"
                                        "note: no MPS\n");
  daemon_.on("Explain",
             {{"client", to_json(ipc::Client{42, 0, "./a", "ls", "running", {}})},
              {"slice", to_json(ipc::Slice{.path = "ls", .priority = 100, .effective_priority = -10})},
              {"kernels", to_json(std::vector<ipc::Kernel>{{"_Z1fv", "m", "opaque", "no PTX", 2, 0, 0, 0, 0}})}});
  EXPECT_EQ(gpuctl({"explain", "42"}).out,
            "42  ./a  in slice ls\n"
            "slices above bound it: priority -10 instead of 100\n\n"
            "FORM    LAUNCHES  REGISTERS  WORKERS/SM  BLOCK-TASK  KERNEL  REASON\n"
            "opaque         2          -           -           -  f()     no PTX\n");
  EXPECT_EQ(daemon_.asked("Explain"), R"({"pid":42})");
}

TEST_F(CommandLine, ForgetKernels) {
  daemon_.on("ForgetKernels", {{"forgotten", 3}});
  EXPECT_EQ(gpuctl({"forget-kernels"}).out, "forgot 3 kernels\n");
  EXPECT_EQ(daemon_.asked("ForgetKernels"), "{}");
  EXPECT_EQ(gpuctl({"forget-kernels", "--user", "4000000000"}).status, kExitOk);
  EXPECT_EQ(daemon_.asked("ForgetKernels"), R"({"uid":4000000000})");
  expect_error({"forget-kernels", "--user", "no such one"}, kExitUsage,
               "--user: there is no user 'no such one'; give a user's name or number");
}

TEST_F(CommandLine, ProfileRefusesWhatDoesNotGoTogether) {
  expect_error({"profile"}, kExitUsage, "profile: give either -o FILE and a program, or --load FILE");
  expect_error({"profile", "-o", "f", "--load", "f"}, kExitUsage,
               "profile: give either -o FILE and a program, or --load FILE");
  expect_error({"profile", "-o", "f"}, kExitUsage,
               "profile: no program given; write gpuctl profile -o FILE -- PROGRAM");
  expect_error({"profile", "-o", "f", "--user", "root", "a"}, kExitUsage, "profile: --user goes with --load");
  expect_error({"profile", "--load", "f", "--", "a"}, kExitUsage, "profile: --load runs no program; leave it out");
  expect_error({"profile", "-o", "f", "--runs", "0", "a"}, kExitUsage,
               "profile: --runs: '0' is not a number from 1 to 1000");
  daemon_.on("GetStatus", to_json(ipc::Status{"0.1.0", {{0, "GPU", "GPU-1", "cuda", 8, 1, "mps"}}, 1, 0, 1, {}}));
  expect_error({"profile", "-o", "f", "--widths", "4,9", "a"}, kExitUsage,
               "profile: --widths: '9' is not a number of SMs from 1 to 8");
  expect_error({"profile", "-o", "/no/such", "--add", "a"}, kExitUsage,
               "profile: /no/such: cannot be read: No such file or directory");
}

TEST_F(CommandLine, TopOnceMeasuresBetweenTwoReplies) {
  ipc::Snapshot first, second;
  first.time_ns = 1'000'000'000;
  second.time_ns = 2'000'000'000;
  ipc::ClientUsage usage;
  usage.launches = 100;
  first.clients = {{42, 0, "./a", "ls", "running", {usage}}};
  usage.launches = 350;
  second.clients = {{42, 0, "./a", "ls", "running", {usage}}};
  daemon_.on("Monitor", [=](const boost::json::object&) {
    return std::vector{ipc::Reply{to_json(first), true, ""}, ipc::Reply{to_json(second), true, ""}};
  });
  const Ran text = gpuctl({"top", "--interval", "0.5"});  // not a terminal, so like --once
  EXPECT_NE(text.out.find(" 250 "), std::string::npos) << text.out << text.err;
  EXPECT_EQ(daemon_.asked("Monitor"), R"({"interval_ms":500})");
  EXPECT_TRUE(daemon_.calls().back().more);
  const Ran json = gpuctl({"top", "--once", "--json"});
  EXPECT_EQ(boost::json::parse(json.out).at("clients").at(0).at("usage").at(0).at("launches_per_s"), 250.0);
}

TEST_F(CommandLine, TopUnderstandsADaemonThatDoesNotKnowFairness) {
  boost::json::object sample = to_json(ipc::Snapshot{});
  sample.erase("fairness");
  daemon_.on("Monitor", [=](const boost::json::object&) {
    return std::vector{ipc::Reply{sample, true, ""}, ipc::Reply{sample, true, ""}};
  });
  const Ran run = gpuctl({"top", "--once", "--json"});
  EXPECT_EQ(run.status, kExitOk) << run.err;
}

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
  expect_error({"set", "ls"}, kExitUsage, "set: KEY=VALUE is required; see 'gpuctl set --help'");
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

TEST_F(CommandLine, RunFailuresExitWith125) {
  expect_error({"run", "true"}, kExitRunFailed, "run: --slice is missing; give the slice to run in: --slice NAME");
  expect_error({"run", "--slice", "ls"}, kExitRunFailed,
               "run: no program given; write gpuctl run --slice NAME PROGRAM ARGUMENTS");
  expect_error({"run", "--slcie", "ls", "true"}, kExitRunFailed,
               "run: unknown option '--slcie'; did you mean '--slice'?");
}

TEST(CommandLineAlone, RewritePrintsATableAndNeedsNoDaemon) {
  const std::string path = PTX_GOLDEN_DIR "/wrap_in_claim_loop/plain.ptx";
  const Ran table = run({"--socket", "/nonexistent/s", "rewrite", path});
  EXPECT_EQ(table.status, 0) << table.err;
  EXPECT_EQ(table.out.rfind("MODULE  PTX    FORM        KERNEL  ", 0), 0u) << table.out;
  EXPECT_NE(table.out.find("\n     1  sm_"), std::string::npos) << table.out;
  EXPECT_NE(table.out.find("  persistent  "), std::string::npos) << table.out;
  const boost::json::value json = boost::json::parse(run({"rewrite", path, "--json"}).out);
  EXPECT_EQ(json.at("modules").at(0).at("kernels").at(0).at("form"), "persistent");
  EXPECT_TRUE(json.at("written").as_array().empty());
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
  EXPECT_EQ(ran.err, "gpuctl: cannot connect to /nonexistent/s: No such file or directory (is gpuctld running?)\n");
}

TEST_F(CommandLine, NonsenseFromTheDaemonExitsWithThree) {
  daemon_.on("ListSlices", {{"slices", 5}});
  expect_error({"list"}, kExitUnreachable,
               "the daemon's reply is not understood: field 'slices' must be an array, not an integer");
  daemon_.answer_with_bytes("hello\0"s);
  expect_error({"list"}, kExitUnreachable,
               "gpuctld at " + daemon_.socket() + ": message is not valid JSON: syntax error");
}

TEST(Help, EveryVerbHasOneWithAnExample) {
  for (const Verb& verb : verbs()) {
    const Ran ran = run({verb.name, "--help"});
    EXPECT_EQ(ran.status, 0);
    EXPECT_EQ(ran.out.rfind(verb.summary, 0), 0u) << ran.out;
    EXPECT_NE(ran.out.find("\nUsage: gpuctl "s + verb.name + ' '), std::string::npos) << ran.out;
    EXPECT_EQ(ran.out.find(verb.name + " "s + verb.name), std::string::npos) << ran.out;
    EXPECT_EQ(ran.out.find("VERB --help"), std::string::npos) << "the footer of the whole: " << ran.out;
    EXPECT_NE(ran.out.find("Example:\n  "s + verb.example), std::string::npos) << ran.out;
    EXPECT_NE(run({"--help"}).out.find(verb.summary), std::string::npos);
  }
  EXPECT_NE(run({"--help"}).out.find("\nUsage: gpuctl [OPTIONS] VERB"), std::string::npos);
  EXPECT_EQ(run({"--version"}).out, "gpuctl " GPUCTL_VERSION "\n");
}

std::pair<std::vector<std::string>, std::vector<std::string>> cut(std::vector<std::string> arguments) {
  auto program = cut_program(arguments);
  return {arguments, program};
}

TEST(CutProgram, LeavesTheProgramUntouched) {
  using List = std::vector<std::string>;
  using Both = std::pair<List, List>;
  EXPECT_EQ(cut({"run", "--slice", "ls", "a", "--slice", "b", "--", "--help"}),
            (Both{{"run", "--slice", "ls"}, {"a", "--slice", "b", "--", "--help"}}));
  EXPECT_EQ(cut({"run", "--slice=ls", "--", "-x", "--", "y"}), (Both{{"run", "--slice=ls"}, {"-x", "--", "y"}}));
  EXPECT_EQ(cut({"--socket", "run", "run", "--json", "a"}), (Both{{"--socket", "run", "run", "--json"}, {"a"}}));
  EXPECT_EQ(cut({"run", "--slice", "ls", ""}), (Both{{"run", "--slice", "ls"}, {""}}));
  EXPECT_EQ(cut({"run", "--slice"}), (Both{{"run", "--slice"}, {}}));
  EXPECT_EQ(cut({"profile", "-o", "f", "--add", "--runs", "3", "a", "-o", "g"}),
            (Both{{"profile", "-o", "f", "--add", "--runs", "3"}, {"a", "-o", "g"}}));
  EXPECT_EQ(cut({"profile", "--load", "f"}), (Both{{"profile", "--load", "f"}, {}}));
  EXPECT_EQ(cut({"show", "run", "--", "x"}), (Both{{"show", "run", "--", "x"}, {}}));
  EXPECT_EQ(cut({}), (Both{{}, {}}));
}

}  // namespace
}  // namespace gpuctl::cli
