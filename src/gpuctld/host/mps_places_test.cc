#include "gpuctld/host/mps_places.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "gpuctld/host/mps_start.h"
#include "gpuctld/testing/fake_mps_control.h"

namespace gpuctl::daemon::mps_places_test {
namespace {

/// A process of MPS's name serves in each directory that has its pid file.
class MpsPlacesTest : public testing::Test {
 protected:
  MpsPlacesTest() { mps_.serve(), ::unsetenv("CUDA_MPS_PIPE_DIRECTORY"); }
  std::string serve(const std::string& name) {
    const std::string directory = mps_.directory() + "/places/" + name;
    std::filesystem::create_directories(directory);
    std::filesystem::copy(mps_.directory() + "/nvidia-cuda-mps-control.pid", directory);
    return directory;
  }
  MpsPlaces places() {
    MpsPlaces made(context_, {mps_.directory() + "/places", "/run/s", "", ""}, [](const std::string&) {});
    made.manage(true);
    return made;
  }

  FakeMpsControl mps_;
  boost::asio::io_context context_{1};
};

TEST_F(MpsPlacesTest, ThoseOfTheDaemonBeforeAreTakenOver) {
  const std::string shared = serve(kSharedMps), of_slice = serve(MpsPlaces::name_of("a/b"));
  MpsPlaces all = places();
  EXPECT_TRUE(all.ours() && all.runs(MpsPlaces::name_of("a/b")));
  EXPECT_FALSE(all.runs(MpsPlaces::name_of("a")));
  EXPECT_EQ(all.name_in(shared), kSharedMps);
  EXPECT_EQ(all.name_in(of_slice), MpsPlaces::name_of("a/b"));
  EXPECT_EQ(all.name_in("/tmp/nvidia-mps"), "");
  all.note_use({{kSharedMps, ::geteuid()}});
  EXPECT_EQ(all.offered(kSharedMps, ::geteuid()), shared);
  EXPECT_EQ(all.offered(MpsPlaces::name_of("a"), ::geteuid()), std::nullopt);
  all.manage(false);
  EXPECT_EQ(all.offered(kSharedMps, ::geteuid()), std::nullopt);
}

/// Whoever finds a slice's path with the name of another one's MPS is in that, where their faults reach it. These two
/// had the same by FNV-1a.
TEST_F(MpsPlacesTest, EachSliceHasItsOwn) {
  const std::string a =
      "x/kmrKLlPwHXNpplGyNFQnV3KpAdzM2EIEjgpY9cbcr9WRwGF60hpHsk/JyoajU1rJxfHJJe49AH3ofZcrR5Zsl08S9VJKjq2dU6v8Rt89NfEQ9";
  const std::string b =
      "x/ms3Vz8PwHXNpR1fe3YQnV3KpAdzM2EMRpnYbCuIVuTEhrRDFYeQgsI/6r7VvMpZgGhqpqB3bgH3ofZc8dFgP908S9VJKjq2dUWJ0Q7MPGKbmW";
  EXPECT_NE(MpsPlaces::name_of(a), MpsPlaces::name_of(b));
  std::set<std::string> names;
  for (int i = 0; i < 1000; ++i) names.insert(MpsPlaces::name_of("s" + std::to_string(i)));
  EXPECT_EQ(names.size(), 1000u);
  for (const std::string& name : names) EXPECT_TRUE(is_mps_name(name) && name.size() == 16) << name;
  EXPECT_EQ(MpsPlaces::name_of("ls"), "w7oyfkaf57cccgmd") << "the next daemon finds it again";
}

TEST_F(MpsPlacesTest, ThereAreSoManyAtMost) {
  ::chmod(mps_.program().c_str(), 0755);
  for (std::size_t i = 0; i + 1 < kMostMps; ++i) serve(MpsPlaces::name_of("s" + std::to_string(i)));
  MpsPlaces all = places();
  EXPECT_FALSE(all.wait(MpsPlaces::name_of("more"), "more", {}, this, [] {}));
  EXPECT_TRUE(all.wait(kSharedMps, "", {}, this, [] {})) << "the last one is for those who share";
  all.stop();
  std::filesystem::remove(mps_.directory() + "/places/" + MpsPlaces::name_of("s0") + "/nvidia-cuda-mps-control.pid");
  MpsPlaces fewer = places();
  EXPECT_TRUE(fewer.wait(MpsPlaces::name_of("more"), "more", {}, this, [] {}));
  fewer.stop();
}

TEST_F(MpsPlacesTest, AnOwnerOfManySlicesLeavesSomeToOthers) {
  ::chmod(mps_.program().c_str(), 0755);
  MpsPlaces all = places();
  const auto wait = [&](const std::string& slice, std::optional<sched::SliceOwner> owner) {
    return all.wait(MpsPlaces::name_of(slice), slice, owner, this, [] {});
  };
  const sched::SliceOwner one{1000, sched::kNobody}, another{1001, sched::kNobody};
  for (std::size_t i = 0; i < kMostMpsOfOwner; ++i) EXPECT_TRUE(wait("one/s" + std::to_string(i), one));
  EXPECT_FALSE(wait("one/more", one));
  EXPECT_TRUE(wait("one/s0", one)) << "it is being started";
  EXPECT_TRUE(wait("another/s", another));
  for (std::size_t i = 0; i < kMostMpsOfOwner + 1; ++i) EXPECT_TRUE(wait("s" + std::to_string(i), std::nullopt));
  all.stop();
}

TEST_F(MpsPlacesTest, AreForTheirSliceAndThoseBelow) {
  const std::string name = MpsPlaces::name_of("a/b");
  EXPECT_TRUE(MpsPlaces::is_for(name, "a/b"));
  EXPECT_TRUE(MpsPlaces::is_for(name, "a/b/c/d"));
  for (const char* other : {"a", "a/bc", "b", "/", "a/c"}) EXPECT_FALSE(MpsPlaces::is_for(name, other)) << other;
  EXPECT_FALSE(MpsPlaces::is_for("", "a/b"));
}

}  // namespace
}  // namespace gpuctl::daemon::mps_places_test
