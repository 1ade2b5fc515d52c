#include "libgpuslice/compiled_image.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

namespace gpuslice {
namespace {

class CompiledImageTest : public testing::Test {
 protected:
  ~CompiledImageTest() override { std::filesystem::remove_all(scratch_); }

  static std::filesystem::path make_scratch() {
    char name[] = "/tmp/gpuctl-compiled-test.XXXXXX";
    return mkdtemp(name);
  }

  const std::filesystem::path scratch_ = make_scratch();
  const CacheDirectory cache_{scratch_ / "cache"};
  const CompileKey key_{.text = "rewritten", .driver_version = 13000, .sm = 90, .max_registers = 32};
};

TEST_F(CompiledImageTest, IsFoundForTheSameAlone) {
  EXPECT_FALSE(find_compiled(key_, cache_));
  ASSERT_TRUE(keep_compiled(key_, "machine code", cache_));
  EXPECT_EQ(find_compiled(key_, cache_), "machine code");
  for (int what = 0; what < 4; ++what) {
    CompileKey other = key_;
    if (what == 0) other.text = "rewritten otherwise";
    if (what == 1) other.driver_version = 13010;
    if (what == 2) other.sm = 100;
    if (what == 3) other.max_registers = 0;
    EXPECT_FALSE(find_compiled(other, cache_)) << what;
  }
}

TEST_F(CompiledImageTest, RemembersWhatCouldNotBeCompiled) {
  ASSERT_TRUE(keep_compiled(key_, "", cache_));
  EXPECT_EQ(find_compiled(key_, cache_), "");
}

TEST_F(CompiledImageTest, WithoutADirectoryNothingIsKept) {
  const CacheDirectory none{""};
  EXPECT_FALSE(keep_compiled(key_, "machine code", none));
  EXPECT_FALSE(find_compiled(key_, none));
}

}  // namespace
}  // namespace gpuslice
