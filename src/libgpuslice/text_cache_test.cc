#include "libgpuslice/text_cache.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "ptx/persistent_abi.h"

namespace gpuslice {
namespace {

namespace fs = std::filesystem;

constexpr char kPtx[] = R"(.version 8.0
.target sm_80
.address_size 64
.visible .entry one(.param .u64 one_0, .param .u32 one_1)
{
  .reg .b32 %r<4>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [one_0];
  mov.u32 %r1, %ctaid.x;
  mul.wide.u32 %rd2, %r1, 4;
  add.s64 %rd3, %rd1, %rd2;
  st.global.u32 [%rd3], %r1;
  ret;
}
.visible .entry none()
{
  .reg .b32 %r<4>;
  mov.u32 %r1, %clusterid.x;
  ret;
}
)";

/// Long enough to be worth keeping.
std::string long_ptx() { return kPtx + std::string(5000, '\n'); }

void expect_same(const Rewritten& a, const Rewritten& b) {
  EXPECT_EQ(a.text, b.text);
  EXPECT_EQ(a.reason, b.reason);
  EXPECT_EQ(a.stands_alone, b.stands_alone);
  ASSERT_EQ(a.kernels.size(), b.kernels.size());
  for (std::size_t i = 0; i < a.kernels.size(); ++i) {
    const ImageKernel &left = a.kernels[i], &right = b.kernels[i];
    EXPECT_EQ(left.name, right.name);
    EXPECT_EQ(left.persistent, right.persistent);
    EXPECT_EQ(left.once, right.once);
    EXPECT_EQ(left.reason, right.reason);
    EXPECT_EQ(left.args_offset, right.args_offset);
    EXPECT_EQ(left.needs_whole_warps, right.needs_whole_warps);
    ASSERT_EQ(left.params.size(), right.params.size());
    for (std::size_t p = 0; p < left.params.size(); ++p) {
      EXPECT_EQ(left.params[p].offset, right.params[p].offset);
      EXPECT_EQ(left.params[p].size, right.params[p].size);
    }
  }
}

class TextCacheTest : public testing::Test {
 protected:
  TextCacheTest() {
    char name[] = "/tmp/gpuctl-text-cache-test.XXXXXX";
    scratch_ = mkdtemp(name);
  }
  ~TextCacheTest() override { fs::remove_all(scratch_); }

  fs::path only_file() const {
    fs::path found;
    for (const auto& entry : fs::directory_iterator(scratch_ / "cache")) {
      EXPECT_TRUE(found.empty());
      found = entry.path();
    }
    return found;
  }

  fs::path scratch_;
  const CacheDirectory none_{""};
};

TEST_F(TextCacheTest, PacksEverything) {
  Rewritten made{.text = std::string("te\0xt", 5), .kernels = {}, .reason = "reason"};
  made.kernels.push_back({.name = "a", .persistent = true, .once = true, .reason = "fine", .params = {{0, 8}, {8, 4}}, .args_offset = 16, .needs_whole_warps = true});
  made.kernels.push_back({.name = "b", .persistent = false, .reason = "", .params = {}, .args_offset = 0, .needs_whole_warps = false});
  const std::string bytes = pack(made);
  const std::optional<Rewritten> back = unpack(bytes);
  ASSERT_TRUE(back);
  expect_same(*back, made);
  for (std::size_t size = 0; size < bytes.size(); ++size) EXPECT_FALSE(unpack(bytes.substr(0, size))) << size;
  EXPECT_FALSE(unpack(bytes + '\0'));
}

TEST_F(TextCacheTest, SecondTimeIsTheSame) {
  const CacheDirectory cache(scratch_ / "cache");
  const Rewritten plain = rewrite_once(long_ptx(), none_);
  ASSERT_EQ(plain.kernels.size(), 2u);
  EXPECT_TRUE(plain.kernels[0].persistent);
  EXPECT_FALSE(plain.kernels[1].persistent);
  EXPECT_NE(plain.text.find(std::string("one") + gpuctl::ptx::kPersistentSuffix), std::string::npos);
  expect_same(rewrite_once(long_ptx(), cache), plain);
  expect_same(rewrite_once(long_ptx(), cache), plain);
}

// That it comes from the file is seen by what the file says.
TEST_F(TextCacheTest, SecondTimeIsFromTheFile) {
  const CacheDirectory cache(scratch_ / "cache");
  rewrite_once(long_ptx(), cache);
  const fs::path file = only_file();
  const fs::path other = scratch_ / "other";
  {
    const CacheDirectory made_elsewhere(other);
    ContentHash key;
    std::ifstream(file, std::ios::binary).seekg(8).read(reinterpret_cast<char*>(&key), sizeof key);
    made_elsewhere.put(key, ".rewritten", pack({.text = "from the file", .kernels = {}, .reason = ""}));
  }
  EXPECT_EQ(rewrite_once(long_ptx(), CacheDirectory(other)).text, "from the file");
}

TEST_F(TextCacheTest, AnotherTextIsAnother) {
  const CacheDirectory cache(scratch_ / "cache");
  rewrite_once(long_ptx(), cache);
  std::string changed = long_ptx();
  changed.replace(changed.find("mul.wide.u32 %rd2, %r1, 4"), 25, "mul.wide.u32 %rd2, %r1, 8");
  expect_same(rewrite_once(changed, cache), rewrite_once(changed, none_));
}

TEST_F(TextCacheTest, DamageIsRepaired) {
  const CacheDirectory cache(scratch_ / "cache");
  const Rewritten plain = rewrite_once(long_ptx(), cache);
  const fs::path file = only_file();
  const auto whole = fs::file_size(file);
  fs::resize_file(file, whole / 2);
  expect_same(rewrite_once(long_ptx(), cache), plain);
  EXPECT_EQ(fs::file_size(file), whole);
}

TEST_F(TextCacheTest, NotUnderstoodIsKeptToo) {
  const CacheDirectory cache(scratch_ / "cache");
  const std::string bad = ".version 8.0\n.target sm_80\n.visible .entry x( {" + std::string(5000, ' ');
  const Rewritten first = rewrite_once(bad, cache);
  EXPECT_TRUE(first.reason.starts_with("PTX not understood: ")) << first.reason;
  expect_same(rewrite_once(bad, cache), first);
  EXPECT_FALSE(only_file().empty());
}

TEST_F(TextCacheTest, ShortTextsMakeNoFile) {
  const CacheDirectory cache(scratch_ / "cache");
  EXPECT_EQ(rewrite_once(kPtx, cache).kernels.size(), 2u);
  EXPECT_FALSE(fs::exists(scratch_ / "cache"));
}

}  // namespace
}  // namespace gpuslice
