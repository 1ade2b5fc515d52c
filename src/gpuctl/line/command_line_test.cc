// Whole command lines against a daemon of the test's own: what is sent and what is printed.
#include "gpuctl/line/command_line.h"

#include <gtest/gtest.h>

#include <filesystem>

#include <algorithm>
#include <boost/json/parse.hpp>

#include "gpuctl/line/verb.h"
#include "gpuctl/testing/command_line_fixture.h"
#include "gpuctl/text/failure.h"

namespace gpuctl::cli {
namespace {

using std::string_literals::operator""s;

TEST_F(CommandLine, CreateSliceSendsOnlyWhatWasGiven) {
  const Ran ran = gpuctl({"create-slice", "ls", "--reserve", "8"});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_EQ(ran.out, "");
  EXPECT_EQ(daemon_.asked("CreateSlice"), R"({"path":"ls","settings":{"reserve":8}})");
  gpuctl({"create-slice", "/batch", "--max=none", "--weight", "50", "--priority", "-5", "--memory-max", "2G",
          "--reserve-mode", "strict", "--policy", "share", "--owner", "0:0"});
  EXPECT_EQ(daemon_.asked("CreateSlice"),
            R"({"path":"batch","settings":{"reserve_mode":"strict","max_unlimited":true,"weight":50,"priority":-5,)"
            R"("memory_max":2147483648,"policy":"share","owner_uid":0,"owner_gid":0}})");
}

TEST_F(CommandLine, WhatTheDaemonNotesAboutAChangeGoesToStderr) {
  for (const auto& [method, arguments] :
       std::vector<std::pair<std::string, std::vector<std::string>>>{{"CreateSlice", {"create-slice", "ls"}},
                                                                     {"SetSlice", {"set", "ls", "weight=4"}},
                                                                     {"DeleteSlice", {"delete-slice", "ls"}}}) {
    daemon_.on(method, {{"slice", to_json(slices_.at(1))}, {"notes", {"it would not last", "nor \x1b[2J fit"}}});
    const Ran ran = gpuctl(arguments);
    EXPECT_EQ(ran.status, 0) << "the change is made";
    EXPECT_EQ(ran.out, "");
    EXPECT_EQ(ran.err.find("note: it would not last\nnote: nor "), 0u) << ran.err;
    EXPECT_EQ(ran.err.find('\x1b'), ran.err.npos);
  }
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

TEST_F(CommandLine, FreezeThawAndMove) {
  EXPECT_EQ(gpuctl({"freeze", "batch/"}).status, kExitOk);
  EXPECT_EQ(daemon_.asked("SetSlice"), R"({"path":"batch","settings":{"frozen":"yes"}})");
  EXPECT_EQ(gpuctl({"freeze", "batch", "--swap"}).status, kExitOk);
  EXPECT_EQ(daemon_.asked("SetSlice"), R"({"path":"batch","settings":{"frozen":"swapped"}})");
  EXPECT_EQ(gpuctl({"thaw", "/"}).out, "");
  EXPECT_EQ(daemon_.asked("SetSlice"), R"({"path":"/","settings":{"frozen":"no"}})");
  daemon_.on("Move", {{"client", to_json(ipc::Client{42, 0, "./a", "ls", "running", {}})}, {"notes", {"in part"}}});
  const Ran moved = gpuctl({"move", "42", "/ls"});
  EXPECT_EQ(moved.status, kExitOk);
  EXPECT_EQ(moved.err, "note: in part\n");
  EXPECT_EQ(daemon_.asked("Move"), R"({"pid":42,"slice":"ls"})");
  expect_error({"move", "ls", "42"}, kExitUsage, "move: 'ls' is not a process id");
}

TEST_F(CommandLine, CheckChangesNothingAndSaysWhatWouldBe) {
  const ipc::SliceSettings before{.max = 100, .weight = 50}, after{.max = 40, .weight = 50};
  const std::vector<ipc::SliceDifference> changed{{"batch", before, after, 2}},
      gone{{"a", before, {}, 0}, {"a/b", before, {}, 0}};
  daemon_.on("SetSlice", {{"slice", to_json(slices_[2])}, {"changes", ipc::to_json(changed)}, {"notes", {"too much"}}});
  const Ran set = gpuctl({"set", "batch", "max=40", "--check"});
  EXPECT_EQ(set.out, "would change batch: max 100 -> 40 (2 programs)\n");
  EXPECT_EQ(set.err, "note: too much\n");
  EXPECT_EQ(daemon_.asked("SetSlice"), R"({"path":"batch","settings":{"max":40},"check":true})");
  daemon_.on("DeleteSlice", {{"changes", ipc::to_json(gone)}});
  EXPECT_EQ(gpuctl({"delete-slice", "-r", "--check", "a"}).out, "would delete a\nwould delete a/b\n");
  EXPECT_EQ(daemon_.asked("DeleteSlice"), R"({"path":"a","recursive":true,"check":true})");
  daemon_.on("CreateSlice", {{"slice", to_json(slices_[2])}, {"changes", boost::json::array()}});
  EXPECT_EQ(gpuctl({"create-slice", "x", "--check"}).out, "nothing to change\n");
  EXPECT_EQ(daemon_.asked("CreateSlice"), R"({"path":"x","settings":{},"check":true})");
  expect_error({"create-slice", "x", "--check", "--persist"}, kExitUsage,
               "create-slice: --check makes nothing; leave out --persist");
}

TEST_F(CommandLine, SetSendsAssignments) {
  EXPECT_EQ(gpuctl({"set", "batch", "max=40", "priority=-1"}).status, 0);
  EXPECT_EQ(daemon_.asked("SetSlice"), R"({"path":"batch","settings":{"max":40,"priority":-1}})");
  EXPECT_EQ(gpuctl({"set", "/", "policy=share"}).status, 0);
  EXPECT_EQ(daemon_.asked("SetSlice"), R"({"path":"/","settings":{"policy":"share"}})");
  EXPECT_EQ(gpuctl({"set", "batch", "/ls", "a/b", "max=40", "weight=7"}).status, 0);
  EXPECT_EQ(daemon_.asked("SetSlice"), R"({"path":"batch","settings":{"max":40,"weight":7},"also":["ls","a/b"]})");
  expect_error({"set", "batch", "max=40", "ls"}, kExitUsage, "'ls' is not KEY=VALUE; write for example max=40");
}

TEST_F(CommandLine, ListPrintsTheTree) {
  const Ran ran = gpuctl({"list"});
  EXPECT_EQ(ran.out.substr(0, ran.out.find('\n')),
            "SLICE    RESERVE  MAX  WEIGHT  PRIORITY  POLICY  OWNER  GRANTED  DEMAND  CLIENTS");
  EXPECT_NE(ran.out.find("\n  batch        -  100 "), std::string::npos) << ran.out;
}

TEST_F(CommandLine, AJoinByALinkIsNoted) {
  const std::string file = std::filesystem::canonical("/proc/self/exe"), link = "/proc/self/exe";
  const std::string note = "note: exe:" + link + " has no programs as long as it is a link: they are known by " + file +
                           ", so say exe:" + file + "\n";
  daemon_.on("SetSlice", {{"slice", to_json(slices_[2])}});
  daemon_.on("CreateSlice", {{"slice", to_json(slices_[2])}});
  EXPECT_EQ(gpuctl({"set", "batch", "join=exe:" + link}).err, note);
  EXPECT_EQ(gpuctl({"create-slice", "batch", "--join", "exe:" + link}).err, note);
  EXPECT_EQ(gpuctl({"set", "batch", "join=exe:" + file}).err, "");
}

TEST_F(CommandLine, ShowTellsABurstAsItTellsAQuota) {
  const auto shown = [&](const std::string& quota, const std::string& burst) {
    slices_[2].quota = quota;
    slices_[2].burst = burst;
    daemon_.on("GetSlice", {{"slice", to_json(slices_[2])}, {"clients", boost::json::array()}});
    const std::string out = gpuctl({"show", "batch"}).out;
    const std::size_t at = out.find("quota  ");
    return at == out.npos ? "" : out.substr(at, out.find('\n', at) - at);
  };
  EXPECT_EQ(shown("40ms/100ms", "0:20ms"), "quota         40ms/100ms, burst 0:20ms; used up 0 times, for 0 us");
  EXPECT_EQ(shown("none", "0:20ms"), "quota         none, burst 0:20ms; used up 0 times, for 0 us");
  EXPECT_EQ(shown("none", "none"), "");
}

TEST_F(CommandLine, ShowTellsEverythingOfASlice) {
  ipc::ClientUsage usage;
  usage.launches = 12400;
  usage.granted = 8;
  usage.memory = 3 << 20;
  slices_[2].faults = 2;
  slices_[2].ended = 1;
  slices_[2].ended_launches = 12400;
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
            "isolation     auto\n"
            "memory max    none\n"
            "target        none\n"
            "policy        share (for programs that may run side by side: reserves first, the rest by weight up to max "
            "and demand)\n"
            "owner         root\n"
            "granted       0 SMs of 0 wanted\n"
            "clients       0\n"
            "faults        2\n"
            "ended         1 program; launches 12.4k, evictions 0\n"
            "latency       none measured\n"
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
  expect_error({"kill", "7"}, kExitRefused, "process 7 is not attached to a slice; a slice that is called so is '/7'");
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

ipc::Event event(std::int64_t number, std::string kind, std::string slice) {
  ipc::Event event;
  event.number = number;
  event.time_us = 1'795'000'000'000'000;
  event.kind = std::move(kind);
  event.slice = std::move(slice);
  return event;
}

/// A line without its time, which depends on where the test runs.
std::string without_time(const std::string& line) {
  return line.size() > 19 ? line.substr(19) : line;
}

TEST_F(CommandLine, EventsAreLinesInTheirOrderInAsManyRepliesAsItTakes) {
  ipc::Event changed = event(4, "changed", "batch"), joined = event(5, "joined", "batch"),
             went = event(9, "mps-went", "");
  changed.uid = 0;
  changed.text = "max none -> 40";
  joined.pid = 4711;
  joined.uid = 0;
  joined.command = "python3 \x1b[2Jtrain.py";
  daemon_.on("Events", [&](const boost::json::object& parameters) {
    const auto after = parameters.contains("after") ? parameters.at("after").as_int64() : 0;
    const std::vector<ipc::Event> part = after == 0   ? std::vector{changed, joined}
                                         : after == 5 ? std::vector{went}
                                                      : std::vector<ipc::Event>();
    return std::vector<ipc::Reply>{{{{"events", ipc::to_json(part)}, {"lost", after == 0 ? 2 : 1}}, false, {}}};
  });
  const Ran ran = gpuctl({"events", "/batch"});
  EXPECT_EQ(ran.status, kExitOk);
  std::istringstream lines(ran.out);
  std::string line;
  std::getline(lines, line);
  EXPECT_EQ(line, "3 events before or between these are forgotten");
  const std::vector<std::string> expected{"  changed    batch         by root: max none -> 40",
                                          "  joined     batch         4711 python3 ?[2Jtrain.py (root)",
                                          "  mps-went   -"};
  for (const std::string& one : expected) {
    std::getline(lines, line);
    EXPECT_EQ(without_time(line), one);
  }
  EXPECT_EQ(daemon_.asked("Events"), R"({"slice":"batch","after":9})");
  const auto json = boost::json::parse(gpuctl({"events", "--json"}).out);
  EXPECT_EQ(json.at("events").as_array().size(), 3u);
  EXPECT_EQ(json.at("lost"), 3);
}

TEST_F(CommandLine, EventsAreFollowedUntilTheDaemonEndsThat) {
  const ipc::Event created = event(1, "created", "x"), deleted = event(3, "deleted", "x");
  ipc::Event throttled = event(2, "throttled", "x");
  throttled.text = "its quota of 1ms/10ms is used up";
  const auto reply = [](const std::vector<ipc::Event>& events, int lost, bool continues) {
    return ipc::Reply{{{"events", ipc::to_json(events)}, {"lost", lost}}, continues, {}};
  };
  daemon_.on("Events", [&](const boost::json::object&) {
    return std::vector<ipc::Reply>{reply({created}, 0, true), reply({}, 0, true), reply({throttled, deleted}, 2, true),
                                   ipc::Reply{{{"reason", "gone"}}, false, "io.gpuctl.NoGpu"}};
  });
  const Ran ran = gpuctl({"events", "--follow"});
  EXPECT_NE(
      ran.out.find("  created    x             by the configuration\n2 events before or between these are forgotten\n"),
      std::string::npos)
      << ran.out;
  EXPECT_NE(ran.out.find("  throttled  x             its quota of 1ms/10ms is used up\n"), std::string::npos)
      << ran.out;
  EXPECT_NE(ran.out.find("  deleted    x             by the configuration\n"), std::string::npos) << ran.out;
  EXPECT_EQ(ran.status, kExitRefused);
}

TEST_F(CommandLine, EventsSayEachTimeThatPressurePassesABound) {
  daemon_.on("WatchPressure", [](const boost::json::object&) {
    const auto reply = [](bool passed, int stall_us) {
      return ipc::Reply{{{"passed", passed}, {"stall_us", stall_us}, {"total_us", 1}}, true, ""};
    };
    return std::vector{reply(false, 0), reply(true, 180'000),
                       ipc::Reply{{{"path", "ls"}}, false, "io.gpuctl.NoSuchSlice"}};
  });
  const Ran ran = gpuctl({"events", "ls", "--pressure", "some:150ms/1s"});
  EXPECT_TRUE(ran.out.ends_with("  pressure   ls            some: work waited 180 ms of 1 s\n")) << ran.out;
  EXPECT_EQ(std::count(ran.out.begin(), ran.out.end(), '\n'), 1);
  EXPECT_EQ(ran.status, kExitRefused);
  EXPECT_EQ(daemon_.asked("WatchPressure"), R"({"slice":"ls","of":"some","stall_us":150000,"window_us":1000000})");
  expect_error({"events", "--pressure", "some:150ms/1s"}, kExitUsage, "events: --pressure is of one slice; name it");
  for (const char* text : {"150ms/1s", "any:150ms/1s", "some:2s/1s", "some:1ms/100ms", "some:150ms"})
    EXPECT_EQ(gpuctl({"events", "ls", "--pressure", text}).status, kExitUsage) << text;
}

TEST_F(CommandLine, AdviseSaysWhetherAJobMayCome) {
  ipc::Advice advice{.isolation = "shared", .why = "-", .in_force = "shared"};
  advice.room = {{.device = 0, .reserved = 40, .reserve_free = 92, .memory_free = 1 << 30}};
  advice.admitted = true;
  daemon_.on("Advise", to_json(advice));
  const Ran yes = gpuctl({"advise", "--reserve", "8", "--memory-min", "1G", "--latency", "5ms"});
  EXPECT_EQ(yes.out,
            "yes\n"
            "GPU 0: 92 SMs can be reserved for it, 40 are for slices beside it\n"
            "GPU 0: 1 GiB of memory can be kept for it, 0 B are for slices beside it\n");
  EXPECT_EQ(yes.status, kExitOk);
  EXPECT_EQ(daemon_.asked("Advise"),
            R"({"path":"new-job.slice","settings":{"reserve":8,"memory_min":1073741824,"latency":"5ms"}})");
  advice.admitted = false;
  advice.reason = "reserve of slice ml does not fit: 100 asked, 92 available";
  daemon_.on("Advise", to_json(advice));
  const Ran no = gpuctl({"advise", "ml", "--reserve", "100"});
  EXPECT_TRUE(no.out.starts_with("no: reserve of slice ml does not fit: 100 asked, 92 available\nGPU 0: 92 SMs"))
      << no.out;
  EXPECT_EQ(no.status, kExitRefused);
  EXPECT_EQ(gpuctl({"advise", "ml", "--reserve", "100", "--json"}).status, kExitRefused);
  expect_error({"advise"}, kExitUsage, "advise: give a slice, or what a job asks for");
}

TEST_F(CommandLine, AdviseShowsBothMeasurementsAndWhatIsNotKnown) {
  ipc::Advice advice{"isolated",
                     "isolated, to be tried: shared it has p99 5.6 ms of 5 ms",
                     "shared",
                     {{"server", "shared", 1200, 5600, 950}}};
  daemon_.on("Advise", to_json(advice));
  EXPECT_EQ(gpuctl({"advise", "ls"}).out,
            "isolated, to be tried: shared it has p99 5.6 ms of 5 ms\n"
            "in force: shared, for programs that start now\n\n"
            "PROGRAM  ISOLATION  BURSTS     P99          OTHERS\n"
            "server   shared       1.2k  5.6 ms  950 launches/s\n\n"
            "not known yet: what server takes isolated\n"
            "  gpuctl set ls isolation=isolated, and start it again beside others\n");
  EXPECT_EQ(daemon_.asked("Advise"), R"({"path":"ls"})");
  advice.measured.push_back({"server", "isolated", 12400, 3100, 900});
  daemon_.on("Advise", to_json(advice));
  EXPECT_EQ(gpuctl({"advise", "ls"}).out.find("not known"), std::string::npos);
  EXPECT_NE(gpuctl({"advise", "ls"}).out.find("\nserver   isolated "), std::string::npos);
  advice.measured.clear();
  advice.room = {{0, 40, 92, 16ll << 30, 64ll << 30, 0.354}, {1, 0, 132, 0, 80ll << 30, {}}};
  daemon_.on("Advise", to_json(advice));
  EXPECT_NE(gpuctl({"advise", "ls"})
                .out.find("GPU 0: 92 SMs can be reserved for it, 40 are for slices beside it\n"
                          "GPU 0: 64 GiB of memory can be kept for it, 16 GiB are for slices beside it\n"
                          "GPU 0: isolated slices beside it used 35 % of its time lately\n"
                          "GPU 1: 132 SMs can be reserved for it, 0 are for slices beside it\n"),
            std::string::npos)
      << gpuctl({"advise", "ls"}).out;
  EXPECT_NE(gpuctl({"advise", "ls"}).out.find("\nnot known yet: what its programs take beside others\n  "),
            std::string::npos);
  EXPECT_EQ(boost::json::parse(gpuctl({"advise", "ls", "--json"}).out).at("in_force"), "shared");
  daemon_.refuse("Advise", "NoSuchSlice", {{"path", "bacth"}});
  expect_error({"advise", "bacth"}, kExitRefused, "slice 'bacth' does not exist; did you mean 'batch'?");
}

TEST_F(CommandLine, UsageIsATableWithATotal) {
  const ipc::UsageEntry gone{.slice = "batch/a",
                             .uid = 4000000000,
                             .gpu = "GPU-old",
                             .sm_seconds = 7200,
                             .work_seconds = 1.5,
                             .launches = 1200,
                             .bursts = 7};
  ipc::UsageEntry now{.slice = "ls", .uid = 0, .gpu = "GPU-x", .device = 1, .sm_seconds = 360, .work_seconds = 7500};
  now.waited_seconds = 0.25;
  now.memory_byte_seconds = 3600.0 * (3ll << 30);
  daemon_.on("GetUsage", {{"entries", ipc::to_json(std::vector{gone, now})}});
  EXPECT_EQ(gpuctl({"usage"}).out,
            "SLICE    USER        GPU      SM HOURS    AT WORK  WAITED  GIB HOURS  LAUNCHES  BURSTS\n"
            "batch/a  4000000000  GPU-old         2      1.5 s       -          -      1.2k       7\n"
            "ls       root        1             0.1  2 h 5 min  250 ms          3         -       -\n"
            "total                              2.1  2 h 5 min  250 ms          3      1.2k       7\n");
  EXPECT_EQ(daemon_.asked("GetUsage"), "{}");
  EXPECT_EQ(boost::json::parse(gpuctl({"usage", "--json"}).out).at("entries").as_array().size(), 2u);
}

TEST_F(CommandLine, UsageAsksForATimeASliceAUserAndAGpu) {
  daemon_.on("GetUsage", {{"entries", boost::json::array()}});
  ipc::Status status;
  status.devices.push_back({.index = 1, .uuid = "GPU-x"});
  daemon_.on("GetStatus", to_json(status));
  const Ran ran = gpuctl({"usage", "--slice", "/batch/", "--user", "root", "--gpu", "1", "--until", "1970-01-09"});
  EXPECT_EQ(ran.out, "nothing was used\n");
  const auto asked = boost::json::parse(daemon_.asked("GetUsage"));
  EXPECT_EQ(asked.at("slice"), "batch");
  EXPECT_EQ(asked.at("uid"), 0);
  EXPECT_EQ(asked.at("gpu"), "GPU-x");
  EXPECT_NEAR(static_cast<double>(asked.at("until").as_int64()), 8 * 86400, 86400);
  EXPECT_EQ(gpuctl({"usage", "--gpu", "GPU-gone", "--since", "1h"}).status, kExitOk);
  EXPECT_EQ(boost::json::parse(daemon_.asked("GetUsage")).at("gpu"), "GPU-gone");
  expect_error({"usage", "--gpu", "7"}, kExitUsage,
               "--gpu: gpuctld manages no GPU 7; give the UUID of one that it managed once");
  expect_error({"usage", "--since", "soon"}, kExitUsage,
               "--since: 'soon' is no time; give how long ago, such as 30min, 12h or 7d, or a day or a time, such as "
               "2026-11-28 or '2026-11-28 10:15'");
  daemon_.refuse("GetUsage", "Unavailable", {{"reason", "/x/usage.db: disk I/O error"}});
  expect_error({"usage"}, kExitRefused, "the daemon cannot tell: /x/usage.db: disk I/O error");
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

/// Versions of CLI11 break lines at different widths.
std::string in_one_line(const std::string& text) {
  std::string line;
  for (const char c : text)
    if (c != '\n' && c != ' ')
      line += c;
    else if (!line.ends_with(' '))
      line += ' ';
  return line;
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
    EXPECT_NE(in_one_line(run({"--help"}).out).find(verb.summary), std::string::npos);
    // CLI11 from 2.4 on takes no such names.
    const std::size_t places = ran.out.find(" [OPTIONS]");
    const std::string names = ran.out.substr(places, ran.out.find('\n', places) - places);
    EXPECT_EQ(names.find_first_of("=:{"), std::string::npos) << names;
  }
  EXPECT_NE(run({"--help"}).out.find("\nUsage: gpuctl [OPTIONS] VERB"), std::string::npos);
  EXPECT_EQ(run({"--version"}).out, "gpuctl " GPUCTL_VERSION "\n");
}

TEST(Help, SaysOfEachAmountThatOneGpuMayHaveWhatThatLooksLike) {
  for (const char* verb : {"set", "create-slice"}) {
    const std::string help = in_one_line(run({verb, "--help"}).out);
    for (const char* example : {"0:8 of GPU 0", "0:40 of GPU 0", "0:40ms/100ms of GPU 0", "0:20ms of GPU 0"})
      EXPECT_NE(help.find(example), std::string::npos) << verb << ": " << example;
  }
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
  EXPECT_EQ(cut({"show", "run", "--", "x"}), (Both{{"show", "run", "--", "x"}, {}}));
  EXPECT_EQ(cut({}), (Both{{}, {}}));
}

}  // namespace
}  // namespace gpuctl::cli
