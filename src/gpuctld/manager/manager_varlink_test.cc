// The protocol: the answers to calls, and to input that is no call.
#include <fstream>
#include <future>

#include "gpuctld/testing/manager_fixture.h"
#include "ipc/interface.h"

namespace gpuctl::daemon {
namespace {

TEST_F(ManagerTest, AnswersTheServiceInterface) {
  auto connection = connect();
  const auto info = call(connection, "org.varlink.service.GetInfo");
  EXPECT_EQ(info.parameters.at("product"), "gpuctld");
  EXPECT_EQ(info.parameters.at("interfaces").as_array().size(), 2u);
  const auto description =
      call(connection, "org.varlink.service.GetInterfaceDescription", {{"interface", "io.gpuctl"}});
  EXPECT_EQ(description.parameters.at("description"), json::string(ipc::interface_text()));
  EXPECT_EQ(call(connection, "org.varlink.service.GetInterfaceDescription", {{"interface", "a.b"}}).error,
            ipc::kInterfaceNotFound);
  EXPECT_EQ(call(connection, "a.b.C").error, ipc::kInterfaceNotFound);
  EXPECT_EQ(call(connection, "io.gpuctl.Nothing").error, ipc::kMethodNotFound);
  EXPECT_EQ(call(connection, "org.varlink.service.CreateSlice").error, ipc::kMethodNotFound);
}

TEST_F(ManagerTest, WrongCallsAreNamedErrorsAndChangeNothing) {
  create("ls", {{"reserve", 100}});
  const auto unfit = call("CreateSlice", {{"path", "x"}, {"settings", {{"reserve", 33}}}});
  EXPECT_EQ(unfit.error, "io.gpuctl.ReserveDoesNotFit");
  EXPECT_EQ(unfit.parameters.at("available"), 32);
  const auto typed = call("CreateSlice", {{"path", "x"}, {"settings", {{"reserve", "8"}}}});
  EXPECT_EQ(typed.error, "io.gpuctl.InvalidValue");
  EXPECT_EQ(typed.parameters.at("field"), "settings.reserve");
  const auto unknown = call("SetSlice", {{"path", "ls"}, {"settings", {{"reserv", 8}}}});
  EXPECT_EQ(unknown.error, "io.gpuctl.InvalidValue");
  EXPECT_EQ(call("CreateSlice", {{"path", "ls"}, {"settings", json::object()}}).error, "io.gpuctl.SliceExists");
  EXPECT_EQ(call("SetSlice", {{"path", "no"}, {"settings", json::object()}}).error, "io.gpuctl.NoSuchSlice");
  EXPECT_EQ(call("SetSlice", {{"path", "ls"}, {"settings", {{"policy", "best"}}}}).error, "io.gpuctl.InvalidValue");
  EXPECT_EQ(call("Explain", {{"pid", 1}}).error, "io.gpuctl.NoSuchClient");
  EXPECT_EQ(call("SetHint", {{"priority", 0}}).error, "io.gpuctl.NotAttached");
  EXPECT_EQ(call("Monitor", {{"interval_ms", 5}}).error, "io.gpuctl.InvalidValue");
  EXPECT_EQ(call("ListSlices").parameters.at("slices").as_array().size(), 2u);
}

TEST_F(ManagerTest, SeveralSlicesAreSetTogetherOrNoneIs) {
  for (const char* path : {"a", "b", "b/below"}) create(path, json::object());
  const auto set = [this](json::array also, json::object settings) {
    return call("SetSlice", {{"path", "a"}, {"also", std::move(also)}, {"settings", std::move(settings)}});
  };
  const json::array notes = set({"b", "b/below"}, {{"max", 500}, {"weight", 7}}).parameters.at("notes").as_array();
  const char* named[] = {"slice a: max 500", "slice b: max 500", "slice b/below: max 500"};
  ASSERT_EQ(notes.size(), std::size(named));
  const auto of_each = [](const ipc::Reply& reply, const char* key) {
    json::array all;
    for (const json::value& one : reply.parameters.at("slices").as_array()) all.push_back(one.at(key));
    return json::serialize(all);
  };
  for (std::size_t n = 0; n < notes.size(); ++n) EXPECT_TRUE(notes[n].as_string().starts_with(named[n])) << notes[n];
  const auto checked =
      call("SetSlice",
           {{"path", "a"}, {"also", json::array{"b"}}, {"settings", {{"max", 500}, {"weight", 9}}}, {"check", true}});
  EXPECT_EQ(checked.parameters.at("notes").as_array().size(), 2u) << "of each, as if it were made";
  EXPECT_EQ(of_each(checked, "path") + of_each(checked, "weight"), R"(["a","b"][9,9])");
  for (const char* path : {"a", "b", "b/below"}) EXPECT_EQ(slice(path).at("weight"), 7) << path;
  EXPECT_EQ(set({"b"}, {{"reserve", 100}, {"weight", 8}}).error, "io.gpuctl.ReserveDoesNotFit");
  EXPECT_EQ(set({"no"}, {{"weight", 8}}).error, "io.gpuctl.NoSuchSlice");
  EXPECT_EQ(set({"b", "a"}, {{"weight", 8}}).error, "io.gpuctl.InvalidValue");
  EXPECT_EQ(set({"b"}, {{"join", "user:65"}}).parameters.at("reason").as_string(), "slice a: user 65 joins b already");
  EXPECT_EQ(set({"b"}, {{"priority", 101}}).parameters.at("reason").as_string(),
            "slice a: must be -100 to 100, not 101");
  EXPECT_EQ(slice("a").at("weight"), 7);
  EXPECT_EQ(slice("a").at("reserve"), 0);
  const ipc::Reply both = set({"b"}, {{"reserve", 50}});
  EXPECT_EQ(both.error, "");
  EXPECT_EQ(of_each(both, "path") + of_each(both, "reserve"), R"(["a","b"][50,50])");
  EXPECT_EQ(both.parameters.at("slice").at("path"), "a");
  EXPECT_FALSE(set({}, {{"weight", 7}}).parameters.contains("slices"));
  EXPECT_EQ(slice("b").at("reserve"), 50);
}

TEST_F(ManagerTest, TheConfigurationIsNamedAsGpuctlNamesIt) {
  stop();
  start({.config_file = "nowhere/.././gpuctl.toml"});
  EXPECT_EQ(call("GetStatus").parameters.at("config").as_string(),
            (std::filesystem::current_path() / "gpuctl.toml").string());
}

TEST_F(ManagerTest, LimitsThatNoGpuReachesAreNoted) {
  const auto made =
      call("CreateSlice", {{"path", "x"}, {"settings", {{"max", 500}, {"memory_max", std::int64_t{1} << 40}}}});
  EXPECT_EQ(made.error, "");
  EXPECT_EQ(json::serialize(made.parameters.at("notes")),
            R"(["max 500 limits nothing: no GPU here has more than 132 SMs",)"
            R"("memory_max 1T limits nothing: no GPU here has more than 1G"])");
  const auto set = call("SetSlice", {{"path", "x"}, {"settings", {{"max", 132}, {"memory_max", 1 << 30}}}});
  EXPECT_FALSE(set.parameters.contains("notes"));
}

TEST_F(ManagerTest, SettingsWithoutEffectAreNoted) {
  create("x", {{"memory_max", 1 << 29}});
  const auto notes_of = [this](const json::object& settings) {
    const auto set = call("SetSlice", {{"path", "x"}, {"settings", settings}});
    return set.parameters.contains("notes") ? json::serialize(set.parameters.at("notes")) : std::string();
  };
  EXPECT_EQ(notes_of({{"burst", "20ms"}}), R"(["burst 20ms has no effect without a quota"])");
  EXPECT_EQ(notes_of({{"quota", "40ms/100ms"}}), "");
  EXPECT_EQ(notes_of({{"memory_high", 1 << 29}}),
            R"(["memory_high 512M lets nothing wait: there is no more than 512M"])");
  EXPECT_EQ(notes_of({{"memory_high", 1 << 28}}), "");
  EXPECT_NE(notes_of({{"memory_high", 16}}).find("memory_high 16 is less than any program allocates"),
            std::string::npos);
  EXPECT_EQ(notes_of({{"memory_unlimited", true}, {"memory_high", std::int64_t{1} << 40}}),
            R"(["memory_high 1T lets nothing wait: there is no more than 1G"])");
}

TEST_F(ManagerTest, WhatThePlaceInTheTreeTakesIsNotedOfWhatIsMadeAndOfWhatWouldBe) {
  create("ls", {{"reserve", 100}, {"priority", 50}});
  const auto notes_of = [this](const char* path, const json::object& settings, bool check) {
    const auto made = call("CreateSlice", {{"path", path}, {"settings", settings}, {"check", check}});
    EXPECT_EQ(made.error, "") << path;
    return made.parameters.contains("notes") ? json::serialize(made.parameters.at("notes")) : std::string();
  };
  for (const bool check : {true, false}) {
    EXPECT_EQ(notes_of("ls/web", json::object(), check),
              R"(["priority 50 of slice ls is for programs directly in it: slices below have 0, as none is set"])");
    EXPECT_EQ(notes_of("rest", {{"reserve", 32}}, check),
              R"(["all 132 SMs of GPU 0 are reserved now: none is left for others while these are kept"])");
  }
}

TEST_F(ManagerTest, AGpuThatASettingNamesTwiceIsNoted) {
  create("x", json::object());
  const auto notes_of = [this](const std::string& setting, const std::string& value) {
    const auto set = call("SetSlice", {{"path", "x"}, {"settings", {{setting, value}}}});
    EXPECT_EQ(set.error, "") << setting;
    return set.parameters.contains("notes") ? json::serialize(set.parameters.at("notes")) : std::string();
  };
  const std::string uuid = std::string(kUuid).substr(0, 8);
  const auto of = [&](const std::string& setting, const std::string& first, const std::string& second) {
    return "[\"" + setting + " names GPU 0 as " + first + " and as " + second + ": what it has as " + first +
           " counts\"]";
  };
  EXPECT_EQ(notes_of("quota", "0:40ms/100ms," + uuid + ":10ms/100ms"), of("quota", "0", uuid));
  EXPECT_EQ(notes_of("quota", "40ms/100ms," + uuid + ":10ms/100ms,0:none"), of("quota", uuid, "0"));
  EXPECT_EQ(notes_of("quota", "0:40ms/100ms"), "");
  EXPECT_EQ(notes_of("burst", "0:20ms," + uuid + ":none"), of("burst", "0", uuid));
  EXPECT_EQ(notes_of("burst", "7:20ms"), R"(["there is no GPU 7 here: what is set for it has no effect"])");
  EXPECT_EQ(notes_of("burst", "none"), "");
  for (const char* setting : {"reserve", "max"}) {
    EXPECT_EQ(notes_of(setting + std::string("_per_gpu"), uuid + ":4,0:8"), of(setting, uuid, "0"));
    EXPECT_EQ(slice("x").at("on_gpus").at(0).at(setting), 4) << "what was said is so";
    EXPECT_EQ(notes_of(setting + std::string("_per_gpu"), "none"), "");
  }
  for (const char* setting : {"memory_min", "memory_max", "memory_high"}) {
    EXPECT_EQ(notes_of(setting + std::string("_per_gpu"), "0:256M," + uuid + ":128M"), of(setting, "0", uuid));
    EXPECT_EQ(notes_of(setting + std::string("_per_gpu"), "none"), "");
  }
}

TEST_F(ManagerTest, MonitorStreamsUntilTheConnectionCloses) {
  auto connection = connect();
  ipc::Call monitor{.method = "io.gpuctl.Monitor", .parameters = {{"interval_ms", 100}}, .more = true};
  auto reply = connection.call(monitor);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(reply) << reply.error().message;
    EXPECT_TRUE(reply->continues);
    EXPECT_TRUE(ipc::from_json<ipc::Snapshot>(reply->parameters));
    reply = connection.receive();
  }
  EXPECT_FALSE(call("Monitor", {{"interval_ms", 100}}).continues);
}

TEST_F(ManagerTest, PipelinedCallsAreAnsweredInOrder) {
  auto connection = connect();
  for (int i = 0; i < 50; ++i)
    ASSERT_TRUE(connection.send({.method = "io.gpuctl.GetSlice", .parameters = {{"path", "p" + std::to_string(i)}}}));
  for (int i = 0; i < 50; ++i)
    EXPECT_EQ(connection.receive().value().parameters.at("path").as_string(), "p" + std::to_string(i));
}

TEST_F(ManagerTest, GarbageIsAnsweredOrCutOffAndHarmsNobody) {
  create("ls", {{"reserve", 8}});
  std::string deep(100000, '[');
  const std::string bad_calls[] = {"",
                                   "\xff\xfe{}",
                                   "{\"method\":\"\xc3\x28\"}",
                                   "[]",
                                   "{}",
                                   "{\"method\":3}",
                                   "{\"method\":\"io.gpuctl.CreateSlice\",\"parameters\":[]}",
                                   deep,
                                   std::string(100000, 'A')};
  for (const std::string& bad : bad_calls) {
    auto connection = connect();
    const std::string framed = bad + '\0';
    ASSERT_EQ(::send(connection.fd(), framed.data(), framed.size(), MSG_NOSIGNAL), static_cast<ssize_t>(framed.size()));
    const auto reply = connection.receive();
    ASSERT_TRUE(reply) << reply.error().message;
    EXPECT_EQ(reply->error, ipc::kInvalidParameter) << bad.substr(0, 60);
    EXPECT_EQ(call(connection, "GetSlice", {{"path", "ls"}}).error, "");
  }
  auto endless = connect();
  const std::string block(65536, 'x');
  std::size_t taken = 0;
  for (ssize_t n = 0; n >= 0 || errno == EAGAIN; taken += static_cast<std::size_t>(std::max<ssize_t>(n, 0))) {
    ASSERT_LT(taken, kMaxRootBytes + (1u << 20));  // the daemon must stop reading
    if (n < 0) std::this_thread::sleep_for(1ms);
    n = ::send(endless.fd(), block.data(), block.size(), MSG_NOSIGNAL);
  }
  EXPECT_EQ(errno, EPIPE);
  EXPECT_EQ(endless.receive().value().error, ipc::kInvalidParameter);
  EXPECT_EQ(call("ListSlices").parameters.at("slices").as_array().size(), 2u);
}

TEST_F(ManagerTest, AProgramOfAnIsolatedSliceIsToldToJoinNoMps) {
  create("ls", {{"isolation", "isolated"}});
  create("ls/a", {{"isolation", "shared"}});
  create("batch", json::object());
  const auto start = [this](const std::string& slice) {
    return call("GetMpsPercentage", {{"slice", slice}, {"queues", 0}}).parameters;
  };
  EXPECT_EQ(start("ls"), (json::object{{"hundredths", nullptr}, {"isolated", true}, {"queues", nullptr}}));
  EXPECT_EQ(start("ls/a"), start("ls"));
  EXPECT_FALSE(start("batch").contains("isolated"));
  EXPECT_EQ(slice("ls/a").at("effective_isolation"), "isolated");
  EXPECT_FALSE(slice("ls").contains("effective_isolation"));
}

/// It goes by what it was told, whatever becomes of the slice until it attaches.
TEST_F(ManagerTest, AProgramThatWasToldThatItIsIsolatedIsSo) {
  create("ls", {{"isolation", "isolated"}});
  auto told = connect(), not_told = connect(), of_another = connect();
  create("other", {{"isolation", "isolated"}});
  EXPECT_EQ(call(told, "GetMpsPercentage", {{"slice", "ls"}}).parameters.at("isolated"), true);
  EXPECT_EQ(call(of_another, "GetMpsPercentage", {{"slice", "other"}}).parameters.at("isolated"), true);
  call("SetSlice", {{"path", "ls"}, {"settings", {{"isolation", "shared"}}}});
  for (ipc::Connection* connection : {&told, &not_told, &of_another})
    call(*connection, "Attach", {{"slice", "ls"}, {"device_uuids", {kUuid}}, {"resumed", false}, {"isolated", true}});
  const auto clients = call("GetSlice", {{"path", "ls"}}).parameters.at("clients").as_array();
  ASSERT_EQ(clients.size(), 3u);
  EXPECT_EQ(clients.at(0).at("isolated"), true);
  EXPECT_EQ(clients.at(1).at("isolated"), false);
  EXPECT_EQ(clients.at(2).at("isolated"), false);
}

TEST_F(ManagerTest, AnAutoSliceIsAsItsFirstProgramIs) {
  create("ls", {{"latency", "5ms"}});
  for (const bool resumed : {false, true})
    for (const bool isolated : {false, true}) {
      EXPECT_EQ(call("GetMpsPercentage", {{"slice", "ls"}}).parameters.at("isolated"), true);
      auto program = connect();
      EXPECT_EQ(
          join(program, {{"slice", "ls"}, {"device_uuids", {kUuid}}, {"resumed", resumed}, {"isolated", isolated}})
              .reply.error,
          "");
      EXPECT_EQ(slice("ls").at("effective_isolation"), isolated ? "isolated" : "shared");
      program = connect();
      ASSERT_TRUE(eventually([&] { return slice("ls").at("clients") == 0; }));
    }
}

TEST_F(ManagerTest, WhoHasStartedOtherwiseThanItsSliceIsNowIsNamed) {
  create("ls", {{"isolation", "isolated"}});
  auto isolated = connect(), shared = connect();
  json::object attach{{"slice", "ls"}, {"device_uuids", {kUuid}}, {"resumed", false}};
  call(shared, "Attach", attach);
  attach["isolated"] = true;
  call(isolated, "Attach", attach);
  const auto clients = call("GetSlice", {{"path", "ls"}}).parameters.at("clients").as_array();
  EXPECT_EQ(clients.at(0).at("isolated"), false);
  EXPECT_EQ(clients.at(1).at("isolated"), true);
  const auto notes = [this](const char* isolation) {
    return call("SetSlice", {{"path", "ls"}, {"settings", {{"isolation", isolation}}}}).parameters.at("notes");
  };
  EXPECT_EQ(notes("shared").at(0),
            "slice ls is shared: 1 program of it started before that and has a context apart until it starts again");
  EXPECT_EQ(
      notes("isolated").at(0),
      "slice ls is isolated: 1 program of it started before that and shares a context with others until it starts "
      "again");
  EXPECT_EQ(call("GetStatus").parameters.at("notes").at(0), notes("isolated").at(0));
}

TEST_F(ManagerTest, AutoIsIsolatedWhereThatIsKnownToBeBetterAndSaysSo) {
  create("batch", json::object());
  EXPECT_EQ(slice("batch").at("isolation"), "auto");
  EXPECT_EQ(slice("batch").at("effective_isolation"), "shared");
  EXPECT_FALSE(slice("batch").contains("isolation_now"));
  create("ls", {{"latency", "5ms"}});
  EXPECT_EQ(slice("ls").at("isolation_now"), "isolated: not measured yet");
  const auto set = call("SetSlice", {{"path", "ls"}, {"settings", {{"latency", "4ms"}}}}).parameters;
  EXPECT_EQ(set.at("notes").at(0), "isolation is auto, now isolated: not measured yet");
  EXPECT_FALSE(call("SetSlice", {{"path", "ls"}, {"settings", {{"weight", 7}}}}).parameters.contains("notes"));
  EXPECT_EQ(call("Advise", {{"path", "no"}}).error, "io.gpuctl.NoSuchSlice");
  EXPECT_EQ(call("Advise", {{"path", "ls"}}).parameters, (json::object{{"isolation", "isolated"},
                                                                       {"why", "isolated: not measured yet"},
                                                                       {"in_force", "isolated"},
                                                                       {"measured", json::array()},
                                                                       {"room",
                                                                        {{{"device", 0},
                                                                          {"reserved", 0},
                                                                          {"reserve_free", 132},
                                                                          {"memory_kept", 0},
                                                                          {"memory_free", 1 << 30},
                                                                          {"isolated_part", 0.0}}}}}));
  const auto may = [this](const char* path, json::object settings) {
    return call("Advise", {{"path", path}, {"settings", std::move(settings)}});
  };
  EXPECT_EQ(may("new", {{"reserve", 100}, {"latency", "5ms"}}).parameters.at("admitted"), true);
  const auto no = may("new", {{"reserve", 133}}).parameters;
  EXPECT_EQ(no.at("admitted"), false);
  EXPECT_EQ(no.at("reason"), "reserve of slice new does not fit: 133 asked, 132 available");
  EXPECT_EQ(no.at("room").at(0).at("reserve_free"), 132);
  EXPECT_EQ(may("ls", {{"memory_min", std::int64_t{2} << 30}}).parameters.at("admitted"), false);
  EXPECT_EQ(may("no/such", {{"reserve", 1}}).error, "io.gpuctl.NoSuchSlice");
  EXPECT_EQ(may("a b", {{"reserve", 1}}).error, "io.gpuctl.InvalidValue");
  EXPECT_EQ(call("ListSlices").parameters.at("slices").as_array().size(), 3u) << "nothing is made";
  const auto told = [this](const char* path) {
    return call("GetMpsPercentage", {{"slice", path}}).parameters.contains("isolated");
  };
  EXPECT_TRUE(told("ls"));
  EXPECT_FALSE(told("batch"));
  auto joined = connect();
  call(joined, "Attach", {{"slice", "batch"}, {"device_uuids", {kUuid}}, {"resumed", false}, {"isolated", true}});
  EXPECT_EQ(call("GetSlice", {{"path", "batch"}}).parameters.at("clients").at(0).at("isolated"), false)
      << "whatever a program says";
}

TEST_F(ManagerTest, AProgramIsToldWhichGpusItsSliceHas) {
  create("all", json::object());
  create("one", {{"devices", "GPU-0011"}});
  create("one/none", {{"devices", "1"}});
  const auto devices = [this](const std::string& slice) {
    return call("GetMpsPercentage", {{"slice", slice}}).parameters.at("devices").as_array();
  };
  EXPECT_FALSE(call("GetMpsPercentage", {{"slice", "all"}}).parameters.contains("devices"));
  ASSERT_EQ(devices("one").size(), 1u);
  EXPECT_EQ(devices("one").at(0).at("uuid"), kUuid);
  EXPECT_TRUE(devices("one/none").empty());
  EXPECT_EQ(slice("one/none").at("on_gpus").at(0).at("seen"), false);
  EXPECT_EQ(call("SetSlice", {{"path", "one"}, {"settings", {{"devices", "0,0"}}}}).error, "io.gpuctl.InvalidValue");
}

TEST_F(ManagerTest, OnlyAServerOfTheMpsHereIsGivenTurns) {
  EXPECT_EQ(call("ServeMps", {{"stub_version", ipc::kStubVersion}}).error, "io.gpuctl.PermissionDenied");
}

/// Of a slice with a reserve, on the software GPU, which needs no MPS.
struct KeptByMps : ManagerTest {
  KeptByMps() { create("batch", {{"reserve", 8}, {"max", 99}}); }
  ipc::Reply attach(json::array sms) {
    return call("Attach",
                {{"slice", "batch"}, {"device_uuids", {kUuid}}, {"resumed", false}, {"mps_sms", std::move(sms)}});
  }
};

TEST_F(KeptByMps, APercentageIsToldBeforeAProgramStarts) {
  const auto hundredths = [this](const std::string& slice) {
    return call("GetMpsPercentage", {{"slice", slice}}).parameters.at("hundredths");
  };
  EXPECT_EQ(hundredths("batch"), 7462);
  EXPECT_TRUE(hundredths("/").is_null());
  EXPECT_TRUE(hundredths("").is_null()) << "the root, as for Attach";
  EXPECT_EQ(call("GetMpsPercentage", {{"slice", "no"}}).error, "io.gpuctl.NoSuchSlice");
  EXPECT_EQ(call("GetMpsPercentage").error, "io.gpuctl.InvalidValue");
  stop();
  start({}, {.daemon = {.always_preemptible = true}});
  EXPECT_TRUE(hundredths("batch").is_null());
}

TEST_F(KeptByMps, AReloadThatRaisesAMaxSaysWhomItLeavesOut) {
  const std::string file = directory_ + "/gpuctl.toml";
  const auto configure = [&](const std::string& batch, const std::string& below) {
    std::ofstream(file) << "[slice.batch]\n" << batch << "[slice.\"batch/below\"]\n" << below;
  };
  stop();
  configure("max = 99\n", "");
  start({.config_file = file});
  const auto reload = [this] {
    std::promise<std::vector<std::string>> problems;
    boost::asio::post(context_, [&] { problems.set_value(manager_->reload()); });
    return problems.get_future().get();
  };
  ASSERT_EQ(reload(), std::vector<std::string>());
  std::vector<ipc::Connection> programs;
  for (const auto& [path, sms] : {std::pair("batch", 98), {"batch", 120}, {"batch/below", 98}, {"/", 98}}) {
    programs.push_back(connect());
    ASSERT_EQ(call(programs.back(), "Attach",
                   {{"slice", path}, {"device_uuids", {kUuid}}, {"resumed", false}, {"mps_sms", {sms}}})
                  .error,
              "");
  }
  configure("max = 99\n", "weight = 7\n");
  ASSERT_EQ(reload(), std::vector<std::string>());
  EXPECT_EQ(logged("MPS keeps"), 0);
  configure("max = 110\n", "weight = 7\n");
  ASSERT_EQ(reload(), std::vector<std::string>());
  EXPECT_EQ(logged("MPS keeps"), 1);
  EXPECT_EQ(logged("MPS keeps 2 programs in batch to the earlier max until started again"), 1);
  configure("max = 120\n", "max = 98\n");
  ASSERT_EQ(reload(), std::vector<std::string>());
  EXPECT_EQ(logged("MPS keeps 1 program in batch to"), 1) << "the one below may have no more than it has";
  std::ofstream(file) << "[daemon]\nsoftware_gpu = true\n";
  for (int again = 0; again < 2; ++again) {
    ASSERT_EQ(reload(), std::vector<std::string>());
    EXPECT_EQ(logged("software_gpu is another one now, which counts once gpuctld is started anew"), 1);
  }
}

TEST_F(KeptByMps, WhoRaisesAMaxIsToldWhomThatLeavesOut) {
  auto program = connect(), plain = connect();
  json::object attach{{"slice", "batch"}, {"device_uuids", {kUuid}}, {"resumed", false}};
  call(plain, "Attach", attach);
  attach["mps_sms"] = {98};
  call(program, "Attach", attach);
  const auto notes = [this](json::value max) {
    const auto reply = call("SetSlice", {{"path", "batch"}, {"settings", {{"max", std::move(max)}}}}).parameters;
    return reply.contains("notes") ? json::serialize(reply.at("notes")) : "";
  };
  EXPECT_EQ(notes(50), "") << "gpuctl keeps it to these";
  EXPECT_EQ(notes(99), "") << "98 are all pairs of 99";
  EXPECT_EQ(notes(120), R"(["MPS keeps 1 program in batch to the earlier max until started again"])");
  const auto part = [this](const char* max) {
    const json::object settings{{"max_unlimited", true}, {"max_per_gpu", max}};
    const auto reply = call("SetSlice", {{"path", "batch"}, {"settings", settings}}).parameters;
    return reply.contains("notes");
  };
  EXPECT_FALSE(part("80%")) << "105 of 132, which is less";
  EXPECT_TRUE(part("90%"));
}

TEST_F(KeptByMps, AProgramSaysToHowManySmsItIsKept) {
  EXPECT_EQ(attach({98}).parameters.at("in_force"), "nothing");
  EXPECT_EQ(attach({100}).parameters.at("in_force"), "max");
  EXPECT_EQ(attach({132}).parameters.at("in_force"), "max");
  EXPECT_EQ(attach({}).parameters.at("in_force"), "max");
  for (const json::array& wrong : {json::array{0}, json::array{-1}, json::array{98, 98}, json::array{"98"}}) {
    const auto refused = attach(wrong);
    EXPECT_EQ(refused.error, "io.gpuctl.InvalidValue");
    EXPECT_TRUE(refused.parameters.at("field").as_string().starts_with("mps_sms"));
  }
}

}  // namespace
}  // namespace gpuctl::daemon
