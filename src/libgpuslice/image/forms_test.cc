#include "libgpuslice/image/forms.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

namespace gpuslice {
namespace {

namespace fs = std::filesystem;

Forms some_forms() {
  Forms forms{.code = std::string("co\0de", 5), .kernels = {}, .stands_alone = true, .reason = "reason"};
  forms.kernels.push_back({.name = "a",
                           .persistent = true,
                           .reason = "fine",
                           .params = {{0, 8}, {8, 4}},
                           .args_offset = 16,
                           .needs_whole_warps = true,
                           .words_behind = true,
                           .blocks_wait = gpuctl::ptx::BlocksWait::kYes});
  forms.kernels.push_back(
      {.name = "b", .persistent = false, .reason = "", .params = {}, .args_offset = 0, .needs_whole_warps = false});
  return forms;
}

void expect_same(const Forms& a, const Forms& b) {
  EXPECT_EQ(a.code, b.code);
  EXPECT_EQ(a.reason, b.reason);
  EXPECT_EQ(a.stands_alone, b.stands_alone);
  ASSERT_EQ(a.kernels.size(), b.kernels.size());
  for (std::size_t i = 0; i < a.kernels.size(); ++i) {
    const ImageKernel &left = a.kernels[i], &right = b.kernels[i];
    EXPECT_EQ(left.name, right.name);
    EXPECT_EQ(left.persistent, right.persistent);
    EXPECT_EQ(left.reason, right.reason);
    EXPECT_EQ(left.args_offset, right.args_offset);
    EXPECT_EQ(left.needs_whole_warps, right.needs_whole_warps);
    EXPECT_EQ(left.words_behind, right.words_behind);
    EXPECT_EQ(left.blocks_wait, right.blocks_wait);
    ASSERT_EQ(left.params.size(), right.params.size());
    for (std::size_t p = 0; p < left.params.size(); ++p) {
      EXPECT_EQ(left.params[p].offset, right.params[p].offset);
      EXPECT_EQ(left.params[p].size, right.params[p].size);
    }
  }
}

TEST(FormsTest, PacksEverything) {
  const std::string bytes = pack(some_forms());
  const std::optional<Forms> back = unpack(bytes);
  ASSERT_TRUE(back);
  expect_same(*back, some_forms());
  for (std::size_t size = 0; size < bytes.size(); ++size) EXPECT_FALSE(unpack(bytes.substr(0, size))) << size;
  EXPECT_FALSE(unpack(bytes + '\0'));
}

TEST(FormsTest, AreFoundUnderTheirKeyAlone) {
  char name[] = "/tmp/gpuctl-forms-test.XXXXXX";
  const fs::path scratch = mkdtemp(name);
  const CacheDirectory cache(scratch / "cache");
  const FormsKey key{.ptx = "text", .sm = 90, .max_registers = 32, .driver_version = 13000};
  ASSERT_TRUE(keep_forms(cache_key(key), some_forms(), cache));
  expect_same(find_forms(cache_key(key), cache).value(), some_forms());
  for (int what = 0; what < 4; ++what) {
    FormsKey other = key;
    if (what == 0) other.ptx = "another text";
    if (what == 1) other.sm = 80;
    if (what == 2) other.max_registers = 0;
    if (what == 3) other.driver_version = 12080;
    EXPECT_FALSE(find_forms(cache_key(other), cache)) << what;
  }
  fs::remove_all(scratch);
}

}  // namespace
}  // namespace gpuslice
