#include "ptx/container/fatbin.h"

#include <gtest/gtest.h>
#include <lz4.h>
#include <zstd.h>

#include "ptx/testing/test_files.h"

namespace gpuctl::ptx {
namespace {

std::string text_of(const FatbinEntry& entry) {
  const auto text = ptx_text(entry);
  return text ? *text : "error: " + text.error().message;
}

TEST(Fatbin, ReadsZstdWithOptionsAndSuffix) {
  const auto image = golden_hex("fatbin/zstd.hex");
  const auto entries = read_fatbin(image);
  ASSERT_TRUE(entries) << entries.error().message;
  ASSERT_EQ(entries->size(), 2u);
  EXPECT_EQ((*entries)[0].sm, 75u);
  EXPECT_EQ((*entries)[0].suffix, '\0');
  EXPECT_EQ((*entries)[0].options, "-maxrregcount=32");
  EXPECT_EQ((*entries)[1].sm, 90u);
  EXPECT_EQ((*entries)[1].suffix, 'a');
  EXPECT_NE(text_of((*entries)[0]).find(".target sm_75"), std::string::npos);
  EXPECT_NE(text_of((*entries)[1]).find(".target sm_90a"), std::string::npos);
  EXPECT_EQ(text_of((*entries)[1]).find('\0'), std::string::npos);
}

TEST(Fatbin, ReadsLz4AndRaw) {
  for (const char* name : {"fatbin/lz4.hex", "fatbin/raw.hex", "fatbin/family.hex"}) {
    const auto image = golden_hex(name);
    const auto entries = read_fatbin(image);
    ASSERT_TRUE(entries) << name << entries.error().message;
    ASSERT_EQ(entries->size(), 1u);
    const std::string text = text_of((*entries)[0]);
    EXPECT_NE(text.find(".visible .entry _Z1kPi"), std::string::npos) << name << text;
    EXPECT_EQ(text.find('\0'), std::string::npos);
  }
}

TEST(Fatbin, SaysThatMachineCodeIsNotPtx) {
  const auto image = golden_hex("fatbin/machine_code.hex");
  const auto entries = read_fatbin(image);
  ASSERT_TRUE(entries);
  EXPECT_EQ((*entries)[0].kind, FatbinKind::kElf);
  EXPECT_EQ(choose_ptx(*entries, 75).error().message, "no PTX, only machine code");
  EXPECT_FALSE(ptx_text((*entries)[0]));
}

TEST(Fatbin, ReadsSeveralContainersInARow) {
  auto image = golden_hex("fatbin/machine_code.hex");
  const auto second = golden_hex("fatbin/raw.hex");
  image.resize((image.size() + 7) / 8 * 8 + 16);
  image.insert(image.end(), second.begin(), second.end());
  const auto entries = read_fatbin(image);
  ASSERT_TRUE(entries) << entries.error().message;
  ASSERT_EQ(entries->size(), 2u);
  EXPECT_EQ((*entries)[1].kind, FatbinKind::kPtx);
}

// Each prefix lies in a heap block of its own, so that a sanitizer sees a read past its end.
TEST(Fatbin, RefusesEveryTruncation) {
  for (const char* name : {"fatbin/zstd.hex", "fatbin/lz4.hex", "fatbin/raw.hex", "fatbin/family.hex"}) {
    const auto whole = golden_hex(name);
    for (std::size_t size = 0; size < whole.size(); ++size) {
      const std::vector<std::byte> cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
      const auto entries = read_fatbin(cut);
      ASSERT_FALSE(entries) << name << " cut at " << size;
      EXPECT_NE(entries.error().message.find("offset 0x"), std::string::npos);
    }
  }
}

TEST(Fatbin, SurvivesEveryDamagedByte) {
  for (const char* name : {"fatbin/zstd.hex", "fatbin/lz4.hex", "fatbin/family.hex"}) {
    const auto whole = golden_hex(name);
    int refused = 0;
    for (std::size_t i = 0; i < whole.size(); ++i) {
      auto damaged = whole;
      damaged[i] ^= std::byte{0xff};
      const auto entries = read_fatbin(damaged);
      if (!entries) {
        ++refused;
        continue;
      }
      for (const FatbinEntry& entry : *entries) refused += !ptx_text(entry);
    }
    EXPECT_GT(refused, 20) << name;
  }
}

TEST(Fatbin, NamesOffsetAndField) {
  auto image = golden_hex("fatbin/raw.hex");
  image[4] = std::byte{9};
  EXPECT_EQ(read_fatbin(image).error().message, "fatbin offset 0x4: container version 9 is not known");
  image = golden_hex("fatbin/raw.hex");
  image[0x10 + 0x08] = std::byte{0xff};
  EXPECT_EQ(read_fatbin(image).error().message, "fatbin offset 0x18: payload does not fit its container");
  image = golden_hex("fatbin/zstd.hex");
  image[0x10 + 0x15] = std::byte{0x7f};
  EXPECT_EQ(read_fatbin(image).error().message, "fatbin offset 0x24: option block lies outside the entry header");
}

// A hundred bytes must not make a process allocate half a gigabyte.
TEST(Fatbin, RefusesSizesThatNoPayloadHolds) {
  for (const char* name : {"fatbin/lz4.hex", "fatbin/zstd.hex"}) {
    auto image = golden_hex(name);
    image[0x10 + 0x38 + 3] = std::byte{0x1f};
    const auto entries = read_fatbin(image);
    ASSERT_TRUE(entries);
    EXPECT_EQ(text_of((*entries)[0]), "error: fatbin offset 0x48: uncompressed size is more than the payload can hold")
        << name;
  }
}

TEST(Fatbin, UnpacksWhatIsPackedTightly) {
  const std::string text(1 << 20, 'a');
  for (const std::uint64_t flag : {kFatbinLz4, kFatbinZstd}) {
    std::vector<char> packed(text.size());
    const std::size_t size =
        flag == kFatbinLz4
            ? static_cast<std::size_t>(LZ4_compress_default(text.data(), packed.data(), 1 << 20, 1 << 20))
            : ZSTD_compress(packed.data(), packed.size(), text.data(), text.size(), 19);
    FatbinEntry entry;
    entry.flags = flag;
    entry.payload = std::as_bytes(std::span(packed)).first(size);
    entry.uncompressed_size = text.size();
    EXPECT_EQ(text_of(entry), text);
  }
}

FatbinEntry ptx(std::uint32_t sm, char suffix = '\0') {
  FatbinEntry entry;
  entry.sm = sm;
  entry.suffix = suffix;
  return entry;
}

TEST(Fatbin, ChoosesTheHighestUsable) {
  const std::vector<FatbinEntry> entries = {ptx(75), ptx(90), ptx(90, 'a'), ptx(100, 'f'), ptx(120)};
  EXPECT_EQ(*choose_ptx(entries, 75), 0u);
  EXPECT_EQ(*choose_ptx(entries, 89), 0u);
  EXPECT_EQ(*choose_ptx(entries, 90), 2u);
  EXPECT_EQ(*choose_ptx(entries, 100), 3u);
  EXPECT_EQ(*choose_ptx(entries, 101), 1u);
  EXPECT_EQ(*choose_ptx(entries, 103), 3u);
  EXPECT_EQ(*choose_ptx(entries, 110), 1u);
  EXPECT_EQ(*choose_ptx(entries, 121), 4u);
  EXPECT_EQ(choose_ptx(entries, 70).error().message, "no PTX for sm_70 (only sm_75, sm_90, sm_90a, sm_100f, sm_120)");
}

TEST(Fatbin, KnowsWhichMachineCodeRuns) {
  const auto runs = [](std::uint32_t sm, char suffix, std::uint32_t device) {
    FatbinEntry entry = ptx(sm, suffix);
    entry.kind = FatbinKind::kElf;
    const std::vector<FatbinEntry> entries = {ptx(device), entry};
    return has_machine_code(entries, device);
  };
  EXPECT_TRUE(runs(90, '\0', 90));
  EXPECT_TRUE(runs(80, '\0', 86));
  EXPECT_FALSE(runs(86, '\0', 80));
  EXPECT_FALSE(runs(80, '\0', 90));
  EXPECT_TRUE(runs(90, 'a', 90));
  EXPECT_FALSE(runs(120, 'a', 121));
  EXPECT_TRUE(runs(100, 'f', 103));
  EXPECT_FALSE(runs(100, 'f', 101));
  const std::vector<FatbinEntry> text_alone = {ptx(90)};
  EXPECT_FALSE(has_machine_code(text_alone, 90));
}

}  // namespace
}  // namespace gpuctl::ptx
