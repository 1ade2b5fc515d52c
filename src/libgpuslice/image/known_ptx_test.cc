#include "libgpuslice/image/known_ptx.h"

#include <elf.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>

namespace gpuslice {
namespace {

/// A cubin's headers: one section of `payload` bytes, followed by the section headers.
std::string make_cubin(std::size_t payload, char fill) {
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_machine = 190;
  header.e_shoff = sizeof header + payload;
  header.e_shnum = 1;
  header.e_shentsize = sizeof(Elf64_Shdr);
  Elf64_Shdr section{};
  section.sh_type = SHT_PROGBITS;
  section.sh_offset = sizeof header;
  section.sh_size = payload;
  std::string cubin(reinterpret_cast<const char*>(&header), sizeof header);
  cubin += std::string(payload, fill);
  cubin.append(reinterpret_cast<const char*>(&section), sizeof section);
  return cubin;
}

TEST(CubinAt, Extent) {
  const std::string cubin = make_cubin(100, 'x');
  const std::string more = cubin + "what lies behind";
  EXPECT_EQ(cubin_at(more.data(), std::nullopt), cubin);
  EXPECT_EQ(cubin_at(more.data(), more.size()), cubin);
  EXPECT_EQ(cubin_at(cubin.data(), cubin.size()), cubin);
}

TEST(CubinAt, NoCubin) {
  EXPECT_FALSE(cubin_at(".version 8.0", std::nullopt));
  EXPECT_FALSE(cubin_at("\177EL", 3));
  const std::string cubin = make_cubin(100, 'x');
  for (std::size_t size = 0; size < cubin.size(); ++size) {
    const std::string part = cubin.substr(0, size);
    EXPECT_FALSE(cubin_at(part.data(), part.size())) << size;
  }
}

class KnownPtxTest : public testing::Test {
 protected:
  KnownPtxTest() {
    char name[] = "/tmp/gpuctl-known-ptx-test.XXXXXX";
    scratch_ = mkdtemp(name);
  }
  ~KnownPtxTest() override { std::filesystem::remove_all(scratch_); }
  std::filesystem::path scratch_;
};

TEST_F(KnownPtxTest, IsFoundByContent) {
  for (const CacheDirectory& cache : {CacheDirectory(scratch_ / "cache"), CacheDirectory("")}) {
    const std::string one = make_cubin(100, 'x'), two = make_cubin(100, 'y');
    EXPECT_FALSE(find_known_ptx(one, cache));
    remember_ptx(one, {"the PTX\nof one", 32}, cache);
    remember_ptx(two, {"", 0}, cache);
    const std::optional<KnownPtx> found = find_known_ptx(std::string(one), cache);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->text, "the PTX\nof one");
    EXPECT_EQ(found->max_registers, 32);
    ASSERT_TRUE(find_known_ptx(two, cache));
    EXPECT_EQ(find_known_ptx(two, cache)->text, "");
    remember_ptx(one, {"another", 0}, cache);
    EXPECT_EQ(find_known_ptx(one, cache)->text, "another");
  }
}

TEST_F(KnownPtxTest, OutlivesTheProcessInADirectoryOnly) {
  const std::string cubin = make_cubin(50, 'z');
  remember_ptx(cubin, {"text", 0}, CacheDirectory(scratch_ / "cache"));
  EXPECT_TRUE(find_known_ptx(cubin, CacheDirectory(scratch_ / "cache")));
  EXPECT_FALSE(find_known_ptx(cubin, CacheDirectory(scratch_ / "elsewhere")));
}

// Everything in memory is forgotten when it becomes too much.
TEST_F(KnownPtxTest, MemoryIsBounded) {
  const CacheDirectory none("");
  const std::string first = make_cubin(10, 'a');
  remember_ptx(first, {std::string(std::size_t{40} << 20, 'a'), 0}, none);
  EXPECT_TRUE(find_known_ptx(first, none));
  const std::string second = make_cubin(10, 'b');
  remember_ptx(second, {std::string(std::size_t{40} << 20, 'b'), 0}, none);
  EXPECT_FALSE(find_known_ptx(first, none));
  EXPECT_TRUE(find_known_ptx(second, none));
}

}  // namespace
}  // namespace gpuslice
