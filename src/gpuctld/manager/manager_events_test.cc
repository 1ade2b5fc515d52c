// What callers of Events are told.
#include <sys/stat.h>

#include <future>
#include <set>

#include "gpuctld/host/mps_places.h"
#include "gpuctld/manager/event_kinds.h"
#include "gpuctld/testing/fake_mps_control.h"
#include "gpuctld/testing/manager_fixture.h"

namespace gpuctl::daemon {
namespace {

constexpr std::uint32_t kStranger = 65534;

class EventsTest : public ManagerTest {
 protected:
  /// What libgpuslice sends first.
  ipc::Connection program(const std::string& slice, const std::string& command) {
    auto connection = connect();
    const Joined joined = join(connection, {{"slice", slice},
                                            {"device_uuids", {kUuid}},
                                            {"resumed", false},
                                            {"stub_version", ipc::stub_version()},
                                            {"command", command}});
    EXPECT_EQ(joined.reply.error, "");
    return connection;
  }

  static std::vector<ipc::Event> events_of(const ipc::Reply& reply) {
    EXPECT_EQ(reply.error, "");
    ipc::Fields fields(reply.parameters);
    auto events = ipc::read_list<ipc::Event>(fields, "events");
    EXPECT_TRUE(fields.ok()) << fields.reason();
    return events;
  }
  std::vector<ipc::Event> all(json::object parameters = {}) { return events_of(call("Events", std::move(parameters))); }

  /// "created batch: max 40"
  static std::vector<std::string> words(const std::vector<ipc::Event>& events) {
    std::vector<std::string> lines;
    for (const ipc::Event& one : events)
      lines.push_back(one.kind + " " + one.slice + (one.text.empty() ? "" : ": " + one.text));
    return lines;
  }
};

TEST_F(EventsTest, SlicesAreCreatedChangedAndDeletedByWhom) {
  create("batch", {{"max", 40}, {"weight", 50}});
  create("batch/a", json::object());
  call("SetSlice", {{"path", "batch"}, {"settings", {{"max_unlimited", true}, {"weight", 60}}}});
  call("SetSlice", {{"path", "batch"}, {"settings", {{"weight", 60}}}});  // which changes nothing
  call("DeleteSlice", {{"path", "batch/a"}});
  const std::vector<std::string> expected{"created batch: max 40, weight 50", "created batch/a",
                                          "changed batch: max 40 -> none, weight 50 -> 60", "deleted batch/a"};
  const auto events = all();
  EXPECT_EQ(words(events), expected);
  for (const ipc::Event& one : events) {
    EXPECT_EQ(one.uid, ::geteuid());
    EXPECT_GT(one.time_us, 1'700'000'000'000'000);
  }
  EXPECT_EQ(words(all({{"slice", "batch/a"}})), (std::vector<std::string>{"created batch/a", "deleted batch/a"}));
  EXPECT_EQ(words(all({{"after", events[2].number}})), (std::vector<std::string>{"deleted batch/a"}));
  EXPECT_EQ(call("Events", {{"slice", "never"}}).error, "io.gpuctl.NoSuchSlice");
  EXPECT_EQ(logged("slice batch is changed by " + user_words(::geteuid()) + ": max 40 -> none, weight 50 -> 60"), 1);
}

TEST_F(EventsTest, WhatApplySlicesDoesIsToldAndADryRunIsNot) {
  create("old", json::object());
  const json::object wanted{{"slices", {{{"path", "new"}, {"settings", {{"weight", 5}}}}}}};
  json::object dry = wanted;
  dry["dry_run"] = true;
  EXPECT_EQ(call("ApplySlices", dry).error, "");
  EXPECT_EQ(all().size(), 1u);
  EXPECT_EQ(call("ApplySlices", wanted).error, "");
  EXPECT_EQ(words(all({{"after", 1}})), (std::vector<std::string>{"deleted old", "created new: weight 5"}));
}

TEST_F(EventsTest, ProgramsJoinAndLeaveByTheirOwnName) {
  create("ls", json::object());
  {
    const auto wrapper = FakeProgram(connect(), "ls");  // as `gpuctl run` does, which becomes the program
    const auto server = program("ls", "./server --port 80");
    EXPECT_EQ(words(all({{"slice", "ls"}})), (std::vector<std::string>{"created ls", "joined ls"}));
  }
  ASSERT_TRUE(eventually([&] { return all().size() == 3; }));
  const ipc::Event left = all().back();
  EXPECT_EQ(words({left}), std::vector<std::string>{"left ls: launches 0, evictions 0"});
  EXPECT_EQ(left.command, "./server --port 80");
  EXPECT_EQ(left.pid, ::getpid());
  EXPECT_EQ(logged("(./server --port 80) left slice ls"), 1);
}

TEST_F(EventsTest, RefusalsOfCallsThatChangeSomethingAreTold) {
  create("ls", {{"reserve", 100}});
  call("CreateSlice", {{"path", "x"}, {"settings", {{"reserve", 33}}}});
  call("GetSlice", {{"path", "nothing"}});
  call("Kill", {{"slice", "nothing"}});
  const std::vector<std::string> expected{"created ls: reserve 100",
                                          "refused x: CreateSlice: ReserveDoesNotFit, path x, asked 33, available 32",
                                          "refused nothing: Kill: NoSuchSlice, path nothing"};
  EXPECT_EQ(words(all()), expected);
}

TEST_F(EventsTest, SoAreThoseOfForgettingKernelsAndOfNotingWhatWasSaved) {
  call("ForgetKernels", {{"uid", -1}});
  call("NoteSaved", {{"saved", true}});
  const auto told = words(all());
  ASSERT_EQ(told.size(), 2u);
  EXPECT_TRUE(told[0].starts_with("refused : ForgetKernels: InvalidValue, field uid")) << told[0];
  EXPECT_TRUE(told[1].starts_with("refused : NoteSaved: InvalidValue, field saved")) << told[1];
}

TEST_F(EventsTest, AProgramThatDoesNotGiveSmsBackInTimeIsToldThoughNothingIsDone) {
  stop();
  Config lax;
  lax.daemon.evict_deadline = lax.daemon.longest_block_task = std::chrono::milliseconds(1);
  start({}, lax);
  create("ls", {{"reserve", 8}});
  create("batch", json::object());
  FakeProgram ls(connect(), "ls"), batch(connect(), "batch");
  ipc::store(batch.stub->usage[0].holding, 132u);
  batch.demand(132);
  EXPECT_TRUE(eventually([&] { return slice("batch").at("granted") == 132; }));
  ls.demand(8);
  EXPECT_TRUE(eventually([&] { return all().back().kind == "disobeyed"; }));
  EXPECT_EQ(
      words({all().back()}),
      std::vector<std::string>{"disobeyed batch: it has not given back SMs within its deadline; others have them now"});
  EXPECT_EQ(logged("has not given back SMs within its deadline"), 1);
}

TEST_F(EventsTest, AProgramIsRefusedWhatAFullGpuHasNotBesideKeptMemory) {
  create("ls", {{"memory_min", 1 << 29}});
  create("batch", json::object());
  auto ls = program("ls", "server"), batch = program("batch", "greedy");
  const auto hold = [&](ipc::Connection& who, std::int64_t bytes) {
    return call(who, "HoldMemory", {{"device", 0}, {"bytes", bytes}}).parameters.at("granted").as_bool();
  };
  EXPECT_TRUE(hold(ls, 1 << 29));
  EXPECT_FALSE(hold(batch, 1 << 30));
  EXPECT_EQ(words({all().back()}),
            std::vector<std::string>{"memory batch: it asked to hold 1073741824 bytes of GPU 0; it may have 536870912 "
                                     "more, by a limit of 1073741824; the GPU is full"});
  EXPECT_EQ(slice("batch").at("memory_refusals"), 1);
  EXPECT_EQ(slice("ls").at("memory_refusals"), 0);
  const auto on = slice("ls").at("on_gpus").at(0);
  EXPECT_EQ(on.at("memory"), 1 << 29);
  EXPECT_EQ(on.at("memory_peak"), 1 << 29);
  EXPECT_EQ(on.at("memory_min"), 1 << 29);
  EXPECT_TRUE(on.at("same").as_bool());
  EXPECT_TRUE(hold(ls, 0));
  EXPECT_EQ(slice("/").at("on_gpus").at(0).at("memory_peak"), 1 << 29) << "the most that was";
  EXPECT_FALSE(hold(batch, 1 << 30));
  EXPECT_EQ(slice("ls").at("memory_refusals"), 1) << "now it is kept for it";
}

TEST_F(EventsTest, AProgramThatALimitRefusesMemoryIsToldOnce) {
  create("small", {{"memory_max", 1000}});
  auto greedy = program("small", "greedy");
  for (const int bytes : {600, 1200, 1300, 1400})
    EXPECT_EQ(call(greedy, "HoldMemory", {{"device", 0}, {"bytes", bytes}}).parameters.at("granted"), bytes == 600);
  const auto events = all();
  ASSERT_EQ(events.size(), 3u) << "not one for each time";
  EXPECT_EQ(words(events)[2],
            "memory small: it asked to hold 1200 bytes of GPU 0; it may have 400 more, by a limit of 1000");
  EXPECT_EQ(events[2].command, "greedy");
  if (::geteuid() != 0) GTEST_SKIP() << "only root can connect as another user";
  auto stranger = connect_as(kStranger);
  const auto seen = events_of(call(stranger, "Events"));
  ASSERT_EQ(seen.size(), 3u);
  EXPECT_EQ(words(seen)[2], "memory small") << "how much it asks for is for who may look into it";
}

TEST_F(EventsTest, AProgramWhoseAllocationsWaitIsToldOnceAndAllAreCounted) {
  create("high", {{"memory_high", 1000}, {"memory_max", 5000}});
  create("high/below", json::object());
  auto greedy = program("high/below", "greedy");
  const auto hold = [&](int bytes) { return call(greedy, "HoldMemory", {{"device", 0}, {"bytes", bytes}}).parameters; };
  EXPECT_FALSE(hold(1000).contains("wait_us"));
  EXPECT_EQ(hold(1125).at("wait_us"), 25'000);
  EXPECT_EQ(hold(2000).at("wait_us"), 100'000);
  EXPECT_EQ(hold(2000), hold(2000)) << "nothing more is held";
  EXPECT_FALSE(hold(2000).contains("wait_us"));
  EXPECT_EQ(hold(6000).at("granted"), false);
  const auto events = words(all());
  ASSERT_EQ(events.size(), 5u) << "one of each kind";
  EXPECT_EQ(events[3],
            "memory high/below: it waits 25000 us with 1125 bytes of GPU 0: slice high is above its memory_high");
  const auto counts = slice("high");
  EXPECT_EQ(counts.at("memory_waits"), 2);
  EXPECT_EQ(counts.at("memory_refusals"), 1);
  EXPECT_EQ(slice("high/below").at("memory_waits"), 0) << "it is the limit of the slice above";
  EXPECT_EQ(slice("high/below").at("effective_memory_high"), 1000);
}

TEST_F(EventsTest, WhoFollowsIsToldAsItHappens) {
  create("before", json::object());
  auto connection = connect();
  auto reply = connection.call({.method = "io.gpuctl.Events", .parameters = {}, .more = true});
  ASSERT_TRUE(reply) << reply.error().message;
  EXPECT_TRUE(reply->continues);
  EXPECT_EQ(words(events_of(*reply)), std::vector<std::string>{"created before"});
  for (int round = 0; round < 3; ++round) {
    const std::string path = "s" + std::to_string(round);
    create(path, json::object());
    reply = connection.receive();
    ASSERT_TRUE(reply) << reply.error().message;
    EXPECT_EQ(words(events_of(*reply)), std::vector<std::string>{"created " + path});
    EXPECT_EQ(reply->parameters.at("lost"), 0);
  }
}

TEST_F(EventsTest, PressureIsToldEachTimeThatItPassesABound) {
  start_with_patience();
  const json::object wanted{{"slice", "batch"}, {"of", "full"}, {"stall_us", 50'000}, {"window_us", 500'000}};
  auto connection = connect();
  auto reply = connection.call({.method = "io.gpuctl.WatchPressure", .parameters = wanted, .more = true});
  ASSERT_TRUE(reply);
  EXPECT_TRUE(reply->continues);
  EXPECT_EQ(reply->parameters.at("passed"), false);
  create("batch/stopped", {{"max", 0}});
  FakeProgram program(connect(), "batch/stopped");
  program.demand(8);
  reply = connection.receive(10s);
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->parameters.at("passed"), true);
  EXPECT_GE(reply->parameters.at("stall_us").as_int64(), 50'000);
  for (const auto& [field, value] :
       {std::pair("of", json::value("most")), {"stall_us", 600'000}, {"window_us", 1000}}) {
    json::object wrong = wanted;
    wrong[field] = value;
    EXPECT_EQ(call("WatchPressure", wrong).error, "io.gpuctl.InvalidValue") << field;
  }
  EXPECT_EQ(call("WatchPressure", wanted).parameters.at("passed"), false) << "it is a new one's first look";
}

/// Its replies are not read until there are more events than are kept.
TEST_F(EventsTest, WhoDoesNotReadHoldsUpNobodyAndLearnsWhatItMissed) {
  auto connection = connect();
  ASSERT_TRUE(connection.send({.method = "io.gpuctl.Events", .parameters = {}, .more = true}));
  std::string deep;  // replies are long, so that the socket does not hold them all
  for (int level = 0; level < 8; ++level)
    create(deep += (level == 0 ? "" : "/") + std::string(60, 'x'), json::object());
  auto changes = connect();
  const int many = static_cast<int>(EventLog::kMostKept) + 8, told = many + 8;
  for (int i = 0; i < many; ++i)
    ASSERT_EQ(call(changes, "SetSlice", {{"path", deep}, {"settings", {{"weight", 1 + i % 2}}}}).error, "");
  std::int64_t had = 0, lost = 0, last = 0;
  while (last < told) {
    const auto reply = connection.receive();
    ASSERT_TRUE(reply) << reply.error().message;
    lost += reply->parameters.at("lost").as_int64();
    for (const ipc::Event& one : events_of(*reply)) {
      EXPECT_GT(one.number, last);
      last = one.number;
      ++had;
    }
  }
  EXPECT_GT(lost, 0);
  EXPECT_EQ(had + lost, told) << "each is had, or is said to be lost";
}

TEST_F(EventsTest, OthersSeeNeitherCommandsNorRefusals) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can connect as another user";
  create("ls", json::object());
  const auto server = program("ls", "secret --key 1");
  call("DeleteSlice", {{"path", "ls"}});
  auto other = connect_as(kStranger);
  const auto seen = events_of(call(other, "Events"));
  EXPECT_EQ(words(seen), (std::vector<std::string>{"created ls", "joined ls"}));
  EXPECT_EQ(seen[1].command, "");
  EXPECT_EQ(call(other, "DeleteSlice", {{"path", "ls"}}).error, "io.gpuctl.PermissionDenied");
  EXPECT_EQ(words(events_of(call(other, "Events"))).back(), "refused ls: DeleteSlice: PermissionDenied, path ls")
      << "its own";
  const auto of_root = all();
  EXPECT_EQ(of_root.size(), 4u);
  EXPECT_EQ(words({of_root[2]}),
            std::vector<std::string>{"refused ls: DeleteSlice: SliceBusy, path ls, clients 1, children 0"});
  EXPECT_EQ(of_root[1].command, "secret --key 1");
  EXPECT_EQ(of_root.back().uid, kStranger);
}

/// Each look of the daemon's sees the program at work with what it was granted.
TEST_F(EventsTest, AQuotaThatIsUsedUpIsToldWithItsGpuWhereThereAreSeveral) {
  for (const bool several : {false, true}) {
    stop();
    if (several) more_gpus_ = {{1, "Test GPU", "GPU-11112233-4455-6677-8899-aabbccddeeff", true, 132, 1ull << 30}};
    start({});
    const std::string path = several ? "several" : "one";
    create(path, {{"quota", "1ms/1s"}});
    FakeProgram program(connect(), path);
    ipc::latency_at(*program.stub.get(), 0).open = 1;
    ipc::store(program.stub->usage[0].outstanding, 1u);
    const auto works = [&] {
      ipc::store(program.stub->usage[0].holding, program.granted());
      program.demand(132);
      return slice(path).at("throttled").as_int64() > 0;
    };
    ASSERT_TRUE(eventually(works));
    ASSERT_TRUE(eventually([&] { return all().back().kind == "throttled"; }));
    const std::string on = several ? " on GPU 0" : "";
    EXPECT_EQ(words({all().back()}),
              std::vector<std::string>{"throttled " + path + ": its quota of 1ms/1s is used up" + on});
    EXPECT_EQ(logged("slice " + path + " has used up its quota of 1ms/1s" + on), 1);
  }
}

TEST_F(EventsTest, MpsThatComesAndGoesIsSeenWhileProgramsAreThere) {
  stop();
  FakeMpsControl mps;
  mps.serve();
  const std::string pid_file = mps.directory() + "/nvidia-cuda-mps-control.pid";
  const std::string pid = mps.read("nvidia-cuda-mps-control.pid");
  std::filesystem::remove(pid_file);
  start({}, {}, false);
  const auto there = program("/", "server");
  EXPECT_EQ(all().size(), 1u);
  mps.write("nvidia-cuda-mps-control.pid", pid);
  ASSERT_TRUE(eventually([&] { return all().size() == 2; }));
  EXPECT_EQ(all()[1].kind, "mps-came");
  ::kill(std::stoi(pid), SIGKILL);
  std::filesystem::remove(pid_file);  // it names a process until somebody waits for that
  ASSERT_TRUE(eventually([&] { return all().size() == 3; }));
  EXPECT_EQ(all()[2].kind, "mps-went");
  EXPECT_EQ(logged("MPS is gone"), 1);
  stop();  // it asks for MPS as long as it runs
}

TEST_F(EventsTest, SoIsTheOneOfAnIsolatedSlice) {
  stop();
  FakeMpsControl mps;
  mps.serve();
  ::unsetenv("CUDA_MPS_PIPE_DIRECTORY");
  const std::string pid = mps.read("nvidia-cuda-mps-control.pid"), place = "places/" + MpsPlaces::name_of("ls");
  std::filesystem::create_directories(mps.directory() + "/" + place);
  mps.write(place + "/nvidia-cuda-mps-control.pid", pid);
  start({.mps_directory = mps.directory() + "/places"}, {}, false);
  const auto there = program("/", "server");
  create("ls", {{"isolation", "isolated"}});
  const auto latest = [&](const char* kind) {
    const ipc::Event event = all().back();
    return event.kind == kind && event.slice == "ls" && event.text == "its own, as it is isolated";
  };
  EXPECT_TRUE(eventually([&] { return latest("mps-came"); }));
  ::kill(std::stoi(pid), SIGKILL);
  EXPECT_TRUE(eventually([&] { return latest("mps-went"); }));
  EXPECT_EQ(logged("the MPS of slice ls is gone"), 1);
  stop();
}

TEST_F(EventsTest, WhatTheJournalTakesIsNotInTheLogToo) {
  stop();
  std::vector<std::string> taken;
  bool takes = true;
  start({.journal = [&](const ipc::Event& event, const std::string& line) {
    if (takes) taken.push_back(event.kind + ": " + line);
    return takes;
  }});
  create("x", json::object());
  boost::asio::post(context_, [&] { takes = false; });
  create("y", json::object());
  EXPECT_EQ(taken, std::vector<std::string>{"created: slice x is created by " + user_words(::geteuid())});
  EXPECT_EQ(logged("slice x is created"), 0);
  EXPECT_EQ(logged("slice y is created"), 1);
}

}  // namespace
}  // namespace gpuctl::daemon
