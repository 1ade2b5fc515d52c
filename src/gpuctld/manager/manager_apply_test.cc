// ApplySlices: all or nothing, and what is said of it beforehand.
#include <fstream>

#include "gpuctld/testing/manager_fixture.h"
#include "slicefile/drop_in.h"

namespace gpuctl::daemon {
namespace {

class ApplySlices : public ManagerTest {
 protected:
  ipc::Reply apply(json::array slices, bool dry_run = false) {
    json::object parameters{{"slices", std::move(slices)}};
    if (dry_run) parameters["dry_run"] = true;
    return call("ApplySlices", std::move(parameters));
  }
  static json::object wanted(const std::string& path, json::object settings = {}) {
    return {{"path", path}, {"settings", std::move(settings)}};
  }
  std::vector<std::string> paths() {
    std::vector<std::string> result;
    const ipc::Reply reply = call("ListSlices");
    for (const auto& slice : reply.parameters.at("slices").as_array())
      result.emplace_back(slice.at("path").as_string());
    return result;
  }
  using Paths = std::vector<std::string>;
};

TEST_F(ApplySlices, MakesTheTreeAndSaysWhatChanged) {
  create("goes", {});
  create("goes/below", {});
  create("stays", {{"weight", 7}, {"max", 5}});
  const json::array tree{wanted("new", {{"reserve", 4}}), wanted("new/below", {{"reserve", 2}}),
                         wanted("stays", {{"weight", 9}})};
  for (const bool dry_run : {true, false}) {
    const auto reply = apply(tree, dry_run);
    EXPECT_EQ(reply.error, "");
    const auto& changes = reply.parameters.at("changes").as_array();
    ASSERT_EQ(changes.size(), 5u);
    const auto change_of = [&](const std::string& path) {
      return std::ranges::find_if(changes, [&](const auto& change) { return change.at("path").as_string() == path; })
          ->as_object();
    };
    EXPECT_FALSE(change_of("goes/below").contains("after"));
    EXPECT_FALSE(change_of("new").contains("before"));
    EXPECT_EQ(change_of("stays").at("before").at("max"), 5);
    EXPECT_EQ(change_of("stays").at("after").at("max_unlimited"), true);  // what the tree does not say is the default
    EXPECT_EQ(change_of("stays").at("after").at("weight"), 9);
    EXPECT_EQ(paths(),
              dry_run ? Paths({"/", "goes", "goes/below", "stays"}) : Paths({"/", "new", "new/below", "stays"}));
  }
  EXPECT_TRUE(apply(tree).parameters.at("changes").as_array().empty());
}

/// As SetSlice says it with `check`.
TEST_F(ApplySlices, ADryRunSaysWhatIsToBeSaidBesideTheChange) {
  stop();
  Config config;  // a file is for any GPU
  for (const char* const path : {"a", "b"}) {
    slicefile::ConfiguredSlice& slice = config.slices.emplace_back();
    slice.path = path;
    slice.change.memory_min = 768 << 20;
  }
  start({}, std::move(config));
  for (const bool dry_run : {true, false}) {
    const auto reply =
        apply({wanted("a", {{"memory_min", 768 << 20}}), wanted("b", {{"memory_min", 768 << 20}})}, dry_run);
    ASSERT_EQ(reply.error, "");
    const auto& notes = reply.parameters.at("notes").as_array();
    ASSERT_EQ(notes.size(), 2u) << dry_run;
    EXPECT_EQ(notes[0], "the memory_min of slice a, 768M, does not fit GPU 0, which has 1G: it is 512M there");
  }
}

TEST_F(ApplySlices, ASliceWithProgramsIsNotDeletedAndThenNothingIsDone) {
  create("busy", {});
  FakeProgram program(connect(), "busy");
  const auto reply = apply({wanted("new")});
  EXPECT_EQ(reply.error, "io.gpuctl.SliceBusy");
  EXPECT_EQ(reply.parameters.at("clients"), 1);
  EXPECT_EQ(reply.parameters.at("programs").as_array().size(), 1u) << "by name";
  EXPECT_EQ(paths(), Paths({"/", "busy"}));
  const auto changed = apply({wanted("busy", {{"weight", 3}})}, true);
  EXPECT_EQ(changed.parameters.at("changes").at(0).at("clients"), 1);
}

TEST_F(ApplySlices, OneMistakeAndNothingIsDone) {
  create("old", {});
  EXPECT_EQ(apply({wanted("a"), wanted("b", {{"weight", 0}})}).error, "io.gpuctl.InvalidValue");
  EXPECT_EQ(apply({wanted("a", {{"reserve", 100}}), wanted("b", {{"reserve", 100}})}).error,
            "io.gpuctl.ReserveDoesNotFit");
  EXPECT_EQ(apply({wanted("a/b"), wanted("old")}).parameters,
            (json::object{{"field", "slices"}, {"reason", "'a/b' is named, and 'a' above it is not"}}));
  EXPECT_EQ(apply({wanted("a"), wanted("a")}).error, "io.gpuctl.InvalidValue");
  EXPECT_EQ(apply({wanted("a", {{"weigth", 1}})}).error, "io.gpuctl.InvalidValue");
  EXPECT_EQ(apply({wanted("/", {{"reserve", 1}})}).error, "io.gpuctl.InvalidValue");
  EXPECT_EQ(paths(), Paths({"/", "old"}));
}

TEST_F(ApplySlices, SlicesExchangeReservesAndKeepTheirOwners) {
  create("a", {{"reserve", 100}, {"owner_uid", 4711}});
  create("b", {{"reserve", 20}});
  const auto reply = apply({wanted("a", {{"reserve", 20}}), wanted("b", {{"reserve", 100}}), wanted("/")});
  EXPECT_EQ(reply.error, "");
  EXPECT_EQ(slice("a").at("owner_uid"), 4711);
  EXPECT_EQ(slice("b").at("reserve"), 100);
}

TEST_F(ApplySlices, SlicesOfSlurmsJobsStayUnlessNamedWithThoseAboveThem) {
  create("slurm", {{"weight", 7}});
  for (const char* path : {"slurm/job-7", "slurm/job-7/step-0", "slurm/other", "job-8"}) create(path, {{"weight", 9}});
  EXPECT_EQ(apply({wanted("new")}).error, "");
  EXPECT_EQ(paths(), Paths({"/", "new", "slurm", "slurm/job-7", "slurm/job-7/step-0"}));
  EXPECT_EQ(slice("slurm").at("weight"), 7);
  EXPECT_EQ(slice("slurm/job-7/step-0").at("weight"), 9);
  EXPECT_EQ(apply({wanted("slurm"), wanted("slurm/job-7", {{"weight", 5}})}).error, "");
  EXPECT_EQ(paths(), Paths({"/", "slurm", "slurm/job-7", "slurm/job-7/step-0"}));
  EXPECT_EQ(slice("slurm/job-7").at("weight"), 5);
  EXPECT_EQ(slice("slurm/job-7/step-0").at("weight"), 9);
}

TEST_F(ApplySlices, AnOwnerAppliesATreeThatDiffersBelowItsSliceAlone) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can connect as another user";
  create("ours", {{"reserve", 20}, {"owner_uid", 4711}});
  create("theirs", {{"weight", 7}});
  auto owner = connect_as(4711);
  json::array tree{wanted("ours", {{"reserve", 20}}), wanted("ours/new"), wanted("theirs", {{"weight", 7}})};
  EXPECT_EQ(call(owner, "ApplySlices", {{"slices", tree}}).error, "");
  EXPECT_EQ(paths(), Paths({"/", "ours", "ours/new", "theirs"}));
  tree[1] = wanted("ours/newer");
  tree[2] = wanted("theirs", {{"weight", 8}});
  EXPECT_EQ(call(owner, "ApplySlices", {{"slices", tree}}).error, "io.gpuctl.PermissionDenied");
  tree.pop_back();
  EXPECT_EQ(call(owner, "ApplySlices", {{"slices", tree}}).error, "io.gpuctl.PermissionDenied") << "to delete it";
  EXPECT_EQ(paths(), Paths({"/", "ours", "ours/new", "theirs"}));
  EXPECT_EQ(slice("theirs").at("weight"), 7);
}

/// What a change that is only checked answers is what the change would be.
TEST_F(ApplySlices, WhatIsOnlyCheckedChangesNothing) {
  create("a", {{"reserve", 8}, {"max", 40}});
  create("a/x", {{"reserve", 4}});
  const auto tree = paths();
  const json::object before = slice("a");
  const auto set = call("SetSlice", {{"path", "a"}, {"settings", {{"max", 500}, {"weight", 7}}}, {"check", true}});
  EXPECT_EQ(set.error, "");
  EXPECT_EQ(set.parameters.at("slice").at("max"), 500);
  EXPECT_EQ(set.parameters.at("changes").as_array().size(), 1u);
  EXPECT_EQ(set.parameters.at("changes").at(0).at("before").at("max"), 40);
  EXPECT_EQ(set.parameters.at("changes").at(0).at("after").at("weight"), 7);
  EXPECT_EQ(json::serialize(set.parameters.at("notes")),
            R"(["max 500 limits nothing: no GPU here has more than 132 SMs"])");
  EXPECT_EQ(call("SetSlice", {{"path", "a"}, {"settings", {{"max", 41}}}, {"check", true}}).error, "");
  const auto made = call("CreateSlice", {{"path", "a/y"}, {"settings", {{"priority", 5}}}, {"check", true}});
  EXPECT_EQ(made.parameters.at("slice").at("effective_max"), 40) << "as the slices above bound it";
  EXPECT_EQ(call("CreateSlice", {{"path", "a/y"}, {"settings", {{"reserve", 5}}}, {"check", true}}).error,
            "io.gpuctl.ReserveDoesNotFit");
  EXPECT_EQ(call("DeleteSlice", {{"path", "a"}, {"check", true}}).error, "io.gpuctl.SliceBusy");
  EXPECT_EQ(call("DeleteSlice", {{"path", "a"}, {"recursive", true}, {"check", true}})
                .parameters.at("changes")
                .as_array()
                .size(),
            2u);
  EXPECT_EQ(paths(), tree);
  EXPECT_EQ(slice("a"), before);
  EXPECT_EQ(call("Events").parameters.at("events").as_array().size(), 2u) << "neither changes nor refusals";
}

TEST_F(ApplySlices, WhatIsSetAfterItWasSavedIsThereAfterARestart) {
  const std::string file = directory_ + "/gpuctl.toml";
  const auto start_anew = [&] {
    stop();
    start({.config_file = file}, read_config(file, true).config);
  };
  std::ofstream(file).close();
  start_anew();
  create("a", {{"max", 4}});
  std::ofstream(file) << "[slice.a]\nmax = 4\n";
  EXPECT_EQ(call("NoteSaved").error, "");
  call("SetSlice", {{"path", "a"}, {"settings", {{"max", 1}, {"frozen", "yes"}}}});
  start_anew();
  EXPECT_EQ(slice("a").at("max"), 1);
  EXPECT_EQ(slice("a").at("frozen"), "yes");
  std::ofstream(file) << "[slice.a]\nmax = 2\n";
  start_anew();
  EXPECT_EQ(slice("a").at("max"), 2) << "the file was changed otherwise";
  std::ofstream(file) << "[slice.a]\nmost = 2\n";
  const auto mistaken = call("NoteSaved");
  EXPECT_EQ(mistaken.error, "io.gpuctl.InvalidValue");
  EXPECT_EQ(mistaken.parameters.at("field"), "configuration");
  if (::geteuid() != 0) return;  // only root can connect as another user
  auto stranger = connect_as(4711);
  EXPECT_EQ(call(stranger, "NoteSaved").error, "io.gpuctl.PermissionDenied");
}

/// It is made again, and that is said where somebody may still do something about it.
TEST_F(ApplySlices, ADeletedSliceThatTheConfigurationNamesIsSaidToComeBack) {
  const std::string file = directory_ + "/gpuctl.toml", saved = file + ".d/b+saved.toml";
  std::ofstream(file) << "[slice.a]\nmax = 4\n[slice.b]\n";
  ASSERT_TRUE(slicefile::write_drop_ins({{saved, "[slice.\"b/saved\"]\nmax = 2\n"}}));
  const auto start_anew = [&] {
    stop();
    start({.config_file = file}, read_config(file, true).config);
  };
  start_anew();
  create("c", {});
  const auto deleted = [&](const std::string& path, bool check) {
    const auto reply = call("DeleteSlice", {{"path", path}, {"recursive", true}, {"check", check}});
    EXPECT_EQ(reply.error, "");
    return reply.parameters.contains("notes") ? json::serialize(reply.parameters.at("notes")) : "";
  };
  const std::string when = ": it is there again once gpuctld starts anew, as at boot, or is reloaded; ",
                    of_a = "[\"" + file + ":1:8 names slice a" + when + "take it out there\"]";
  const auto applied = apply({}, true).parameters;
  EXPECT_NE(json::serialize(applied.at("notes")).find(":1:8 names slice a" + when), std::string::npos);
  EXPECT_EQ(deleted("a", true), of_a);
  EXPECT_EQ(deleted("a", false), of_a);
  EXPECT_EQ(deleted("b", false),
            "[\"" + file + ":3:8 names slice b" + when + "take it out there\",\"" + saved + ":2:8 names slice b/saved" +
                when + "remove that file, or run gpuctl save, which keeps all slices as they are then\"]");
  EXPECT_EQ(deleted("c", false), "");
  EXPECT_EQ(paths(), Paths({"/"}));
  start_anew();
  EXPECT_EQ(paths(), Paths({"/", "a", "b", "b/saved"})) << "what was said is so";
  std::ofstream(file).close();
  EXPECT_EQ(deleted("a", false), "") << "the file is as it is now";
  std::filesystem::remove(saved);
  start_anew();
  EXPECT_EQ(paths(), Paths({"/", "b", "b/saved"}));
}

/// Which may be long, and keeps all waiting.
TEST_F(ApplySlices, WhoDeletesSlicesOfTheirOwnDoesNotHaveTheConfigurationRead) {
  if (::geteuid() != 0) return;  // only root can connect as another user
  const std::string file = directory_ + "/gpuctl.toml";
  std::ofstream(file) << "[slice.a]\n";
  stop();
  start({.config_file = file}, read_config(file, true).config);
  create("ours", {{"owner_uid", 4711}});
  create("ours/x", {});
  std::ofstream(file) << "[slice.a]\n[slice.\"ours/x\"]\n";
  auto owner = connect_as(4711), root = connect();
  const json::object check{{"path", "ours/x"}, {"check", true}};
  const auto by_owner = call(owner, "DeleteSlice", check);
  EXPECT_EQ(by_owner.error, "");
  EXPECT_FALSE(by_owner.parameters.contains("notes"));
  EXPECT_TRUE(call(root, "DeleteSlice", check).parameters.contains("notes"));
}

TEST_F(ApplySlices, WhatIsBelowGoesTooUnlessAProgramIsThere) {
  create("a", {});
  create("a/x", {});
  create("b", {});
  {
    const FakeProgram program(connect(), "a/x");
    const auto refused = call("DeleteSlice", {{"path", "a"}, {"recursive", true}});
    EXPECT_EQ(refused.error, "io.gpuctl.SliceBusy");
    EXPECT_EQ(refused.parameters.at("path"), "a");
    EXPECT_EQ(refused.parameters.at("clients"), 1);
    const std::string name(refused.parameters.at("programs").at(0).as_string());
    EXPECT_TRUE(name.starts_with(std::to_string(::getpid()) + " ") && name.ends_with(" in a/x")) << name;
    EXPECT_EQ(paths(), Paths({"/", "a", "a/x", "b"}));
    EXPECT_FALSE(call("DeleteSlice", {{"path", "a"}}).parameters.contains("programs")) << "none directly in it";
  }
  ASSERT_TRUE(eventually([&] { return call("DeleteSlice", {{"path", "a"}, {"recursive", true}}).error.empty(); }));
  EXPECT_EQ(paths(), Paths({"/", "b"}));
}

}  // namespace
}  // namespace gpuctl::daemon
