// GetUsage: what was used, who is told of it, and that it outlives programs, slices and the daemon.
#include <fstream>

#include "gpuctld/testing/manager_fixture.h"

namespace gpuctl::daemon::usage_test {
namespace {

class Usage : public ManagerTest {
 protected:
  Usage() { begin_again(); }
  void begin_again() {
    stop();
    start({.usage = directory_ + "/usage.db"});
  }
  json::array entries(json::object question = {}) {
    const auto reply = call("GetUsage", std::move(question));
    EXPECT_EQ(reply.error, "") << json::serialize(reply.parameters);
    return reply.error.empty() ? reply.parameters.at("entries").as_array() : json::array();
  }
  static void work(FakeProgram& program, std::uint64_t ms) {
    ipc::LatencyCounts& bursts = ipc::latency_at(*program.stub.get(), 0);
    std::this_thread::sleep_for(std::chrono::milliseconds(ms));  // no program works for longer than it is there
    ipc::store(bursts.bursts_ended, ipc::load(bursts.bursts_ended) + 1);
    ipc::store(bursts.burst_ns, ipc::load(bursts.burst_ns) + ms * 1'000'000);
  }
};

class Energy : public Usage {
 protected:
  /// `first` is what the script below does before it answers.
  void begin_with(const std::string& first) {
    // Stands in for gpuctld --probe: the GPU has used a kilojoule more each time that it is asked.
    const std::string program = directory_ + "/probe";
    std::ofstream(program) << "#!/bin/sh\necho >> " << asked() << "\nn=$(wc -l < " << asked() << ")\n"
                           << first << "\necho \"{\\\"devices\\\": [{\\\"name\\\": \\\"a\\\", \\\"uuid\\\": \\\""
                           << kUuid
                           << "\\\", \\\"sms\\\": 132, \\\"memory\\\": 1, \\\"millijoules\\\": ${n}000000}]}\"\n";
    ASSERT_EQ(::chmod(program.c_str(), 0700), 0);
    stop();
    start({.usage = directory_ + "/usage.db", .energy = {.socket = "", .program = program, .every = 20ms}});
  }
  std::string asked() const { return directory_ + "/asked"; }
  /// How often.
  std::size_t times_asked() const {
    std::error_code none;
    const std::uintmax_t bytes = std::filesystem::file_size(asked(), none);
    return none ? 0 : bytes;
  }
  double joules(const char* path) {
    const json::object now = slice(path);
    return now.contains("energy_joules") ? now.at("energy_joules").to_number<double>() : -1.0;
  }
  void delete_unused(const std::string& path) {
    ASSERT_TRUE(eventually([&] { return slice(path).at("clients") == 0; }));
    EXPECT_EQ(call("DeleteSlice", {{"path", path}}).error, "");
  }
};

TEST_F(Usage, SmSecondsOfASliceAreThoseOfAllInItAndBelowIt) {
  create("a", {});
  create("a/b", {});
  create("idle", {});
  EXPECT_FALSE(slice("a").contains("totals")) << "nothing was used";
  const auto sm_seconds = [this](const char* path) {
    const json::object now = slice(path);
    return now.contains("totals") ? now.at("totals").at("sm_seconds").to_number<double>() : 0;
  };
  {
    FakeProgram program_in_slice(connect(), "a/b");
    ASSERT_TRUE(eventually([&] {
      work(program_in_slice, 10);
      entries();  // what was used until now is taken
      return sm_seconds("a") > 0;
    }));
  }
  const double used = sm_seconds("a");
  EXPECT_EQ(sm_seconds("a/b"), used);
  EXPECT_EQ(sm_seconds("/"), used);
  EXPECT_FALSE(slice("idle").contains("totals"));
}

TEST_F(Energy, IsSharedByWhatWasUsed) {
  begin_with("");
  create("a", {});
  create("a/b", {});
  create("idle", {});
  EXPECT_FALSE(slice("a").contains("energy_joules"));
  FakeProgram program_in_slice(connect(), "a/b");
  ASSERT_TRUE(eventually([&] {
    work(program_in_slice, 10);
    return joules("a") > 0;
  }));
  EXPECT_EQ(joules("idle"), 0);
  double told = 0;
  for (const json::value& entry : entries({{"slice", "a/b"}})) told += entry.at("joules").to_number<double>();
  EXPECT_GT(told, 0);
}

TEST_F(Energy, OfASliceThatIsDeletedStaysInThoseAboveIt) {
  begin_with("");
  create("a", {});
  create("a/gone", {});
  create("a/stays", {});
  FakeProgram stays(connect(), "a/stays");
  {
    FakeProgram leaves(connect(), "a/gone");
    ASSERT_TRUE(eventually([&] {
      work(leaves, 10);
      return joules("a/gone") > 0;
    }));
  }
  const double in_a = joules("a"), in_all = joules("/");
  EXPECT_GT(in_a, 0);
  delete_unused("a/gone");
  EXPECT_GE(joules("a"), in_a);
  EXPECT_GE(joules("/"), in_all);
  EXPECT_EQ(joules("a/stays"), 0);
}

TEST_F(Energy, OfASliceThatIsDeletedBeforeTheReadingCountsAboveIt) {
  begin_with("until [ $n = 1 -o -e " + directory_ + "/go ]; do sleep 0.01; done");
  create("gone", {});
  {
    FakeProgram leaves(connect(), "gone");
    ASSERT_TRUE(eventually([&] { return times_asked() == 2; })) << "the first reading was heard, the second waits";
    work(leaves, 20);
  }
  delete_unused("gone");
  EXPECT_EQ(joules("/"), 0);
  std::ofstream(directory_ + "/go").close();
  EXPECT_TRUE(eventually([&] { return joules("/") > 0; }));
}

TEST_F(Usage, OutlivesProgramSliceAndDaemon) {
  create("a", {});
  {
    FakeProgram program(connect(), "a");
    work(program, 20);
    const json::array now = entries();
    ASSERT_EQ(now.size(), 1u);
    const json::object& its = now[0].as_object();
    EXPECT_EQ(its.at("slice"), "a");
    EXPECT_EQ(its.at("uid"), ::geteuid());
    EXPECT_EQ(its.at("gpu"), kUuid);
    EXPECT_EQ(its.at("device"), 0);
    EXPECT_EQ(its.at("bursts"), 1);
    EXPECT_NEAR(its.at("work_seconds").as_double(), 0.02, 1e-6);
    EXPECT_NEAR(its.at("sm_seconds").as_double(), 0.02 * 132, 1e-3) << "it may have all";
    work(program, 20);
  }
  ASSERT_TRUE(eventually([&] { return slice("a").at("clients") == 0; }));
  EXPECT_EQ(call("DeleteSlice", {{"path", "a"}}).error, "");
  begin_again();
  const json::array later = entries();
  ASSERT_EQ(later.size(), 1u);
  EXPECT_EQ(later[0].at("bursts"), 2);
  EXPECT_NEAR(later[0].at("work_seconds").as_double(), 0.04, 1e-6);
}

TEST_F(Usage, TellsWhatIsAskedFor) {
  create("a", {});
  create("a/b", {});
  FakeProgram program(connect(), "a/b"), other(connect(), "/");
  work(program, 5);
  work(other, 5);
  EXPECT_EQ(entries().size(), 2u);
  EXPECT_EQ(entries({{"slice", "a"}}).size(), 1u);
  EXPECT_EQ(entries({{"slice", "never"}}).size(), 0u);
  EXPECT_EQ(entries({{"uid", ::geteuid() + 1}}).size(), 0u);
  EXPECT_EQ(entries({{"gpu", kUuid}}).size(), 2u);
  EXPECT_EQ(entries({{"gpu", "GPU-other"}}).size(), 0u);
  EXPECT_EQ(entries({{"until", 1000}}).size(), 0u);
  EXPECT_EQ(entries({{"since", 1000}, {"until", 253'402'300'800}}).size(), 2u);
  EXPECT_EQ(call("GetUsage", {{"since", -1}}).error, "io.gpuctl.InvalidValue");
  EXPECT_EQ(call("GetUsage", {{"sinse", 1}}).error, "io.gpuctl.InvalidValue");
}

TEST_F(Usage, SaysWhyItCannotTell) {
  stop();
  start({});
  EXPECT_EQ(call("GetUsage").error, "io.gpuctl.Unavailable");
  stop();
  std::filesystem::create_directory(directory_ + "/usage.db");
  start({.usage = directory_ + "/usage.db"});
  const auto reply = call("GetUsage");
  EXPECT_EQ(reply.error, "io.gpuctl.Unavailable");
  EXPECT_NE(reply.parameters.at("reason").as_string().find("usage.db"), std::string_view::npos);
  EXPECT_EQ(call("ListSlices").error, "");
}

}  // namespace
}  // namespace gpuctl::daemon::usage_test
