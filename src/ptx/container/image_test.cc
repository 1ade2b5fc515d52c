#include "ptx/container/image.h"

#include <elf.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ptx/testing/test_files.h"

namespace gpuctl::ptx {
namespace {

constexpr char kText[] = "// .target sm_10\n.version 8.0\n.target sm_90a, debug\n";

void append(std::vector<std::byte>& bytes, const void* data, std::size_t size) {
  const auto* first = static_cast<const std::byte*>(data);
  bytes.insert(bytes.end(), first, first + size);
}

/// An ELF file with one section called `name` that holds `content`.
std::vector<std::byte> elf_with_section(const std::string& name, const std::vector<std::byte>& content) {
  const std::string names = std::string("\0.shstrtab\0", 11) + name + '\0';
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_machine = EM_X86_64;
  header.e_shnum = 3;
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shstrndx = 1;
  header.e_shoff = sizeof header;
  Elf64_Shdr sections[3] = {};
  sections[1].sh_type = SHT_STRTAB;
  sections[1].sh_name = 1;
  sections[1].sh_offset = sizeof header + sizeof sections;
  sections[1].sh_size = names.size();
  sections[2].sh_type = SHT_PROGBITS;
  sections[2].sh_name = 11;
  sections[2].sh_offset = sections[1].sh_offset + names.size();
  sections[2].sh_size = content.size();
  std::vector<std::byte> image;
  append(image, &header, sizeof header);
  append(image, sections, sizeof sections);
  append(image, names.data(), names.size());
  append(image, content.data(), content.size());
  return image;
}

TEST(Image, ReadsPtxText) {
  const auto entries = read_image(std::as_bytes(std::span(kText)));
  ASSERT_TRUE(entries) << entries.error().message;
  EXPECT_EQ((*entries)[0].sm, 90u);
  EXPECT_EQ((*entries)[0].suffix, 'a');
  EXPECT_EQ(*ptx_text((*entries)[0]), kText);
}

// An error is one line of printable characters.
TEST(Image, NamesSectionsOfDamagedFilesPrintably) {
  auto image = elf_with_section("a\n\x1b", {});
  constexpr std::size_t kSize = sizeof(Elf64_Ehdr) + 2 * sizeof(Elf64_Shdr) + offsetof(Elf64_Shdr, sh_size);
  image[kSize] = std::byte{0xff};
  EXPECT_EQ(read_image(image).error().message, "ELF section 'a\?\?' lies outside the file");
}

TEST(Image, FindsFatbinSections) {
  for (const char* name : {".nv_fatbin", "__nv_relfatbin"}) {
    const auto image = elf_with_section(name, golden_hex("fatbin/zstd.hex"));
    const auto entries = read_image(image);
    ASSERT_TRUE(entries) << entries.error().message;
    EXPECT_EQ(entries->size(), 2u);
  }
  EXPECT_EQ(read_image(elf_with_section(".text", {})).error().message,
            "ELF file without device code (no .nv_fatbin section)");
}

TEST(Image, KnowsManagedVariablesOfPtx) {
  for (const char* managed :
       {".global .attribute(.managed) .align 4 .u32 x;", ".attribute( .unified(1, 2),\n.managed )"})
    EXPECT_TRUE(has_managed_variables(std::string_view(managed))) << managed;
  for (const char* other : {"", ".global .align 4 .u32 managed;", ".file 1 \"a.managed.cu\"", ".managed"})
    EXPECT_FALSE(has_managed_variables(std::string_view(other))) << other;
}

TEST(Image, KnowsManagedVariablesOfMachineCode) {
  const auto code_with = [](unsigned char type, unsigned char other) {
    Elf64_Sym symbols[2] = {};
    symbols[1].st_info = ELF64_ST_INFO(STB_LOCAL, type);
    symbols[1].st_other = other;
    std::vector<std::byte> bytes;
    append(bytes, symbols, sizeof symbols);
    return elf_with_section(".symtab", bytes);
  };
  const auto is_managed = [](const std::vector<std::byte>& code, std::uint64_t uncompressed_size = 0) {
    FatbinEntry entry{.kind = FatbinKind::kElf};
    entry.payload = code;
    entry.uncompressed_size = uncompressed_size;
    return has_managed_variables(entry);
  };
  EXPECT_TRUE(is_managed(code_with(STT_OBJECT, 4)));
  EXPECT_FALSE(is_managed(code_with(STT_OBJECT, 0)));
  EXPECT_FALSE(is_managed(code_with(STT_FUNC, 0x10)));
  EXPECT_FALSE(is_managed(code_with(STT_NOTYPE, 0xa4)));
  EXPECT_FALSE(is_managed(code_with(STT_OBJECT, 4), 1000)) << "it is compressed";
  EXPECT_FALSE(is_managed({}));
  EXPECT_FALSE(is_managed(elf_with_section(".text", {})));
}

TEST(Image, RefusesEveryTruncatedElf) {
  const auto whole = elf_with_section(".nv_fatbin", golden_hex("fatbin/raw.hex"));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const std::vector<std::byte> cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    ASSERT_FALSE(read_image(cut)) << size;
  }
}

TEST(Image, RefusesWhatItDoesNotKnow) {
  EXPECT_EQ(read_image({}).error().message, "image is neither PTX (no .target), fatbin nor ELF");
  constexpr char kNoSm[] = ".version 8.0 .target compute_90";
  EXPECT_EQ(read_image(std::as_bytes(std::span(kNoSm))).error().message,
            "PTX with a .target that names no sm_ architecture");
}

TEST(Image, FollowsAWrapperInMemory) {
  const auto container = golden_hex("fatbin/zstd.hex");
  struct {
    std::uint32_t magic = kFatbinWrapperMagic;
    std::uint32_t version = 1;
    const void* data;
    const void* name = nullptr;
  } wrapper{.data = container.data()};
  const auto extent = image_in_memory(&wrapper);
  ASSERT_TRUE(extent) << extent.error().message;
  EXPECT_EQ(extent->data(), container.data());
  EXPECT_EQ(extent->size(), container.size());
  wrapper.version = 7;
  EXPECT_EQ(image_in_memory(&wrapper).error().message, "fatbin wrapper offset 0x4: version 7 is not known");
  wrapper = {.version = 1, .data = nullptr};
  EXPECT_EQ(image_in_memory(&wrapper).error().message, "fatbin wrapper offset 0x8: null pointer");
}

TEST(Image, MeasuresTextAndCubinInMemory) {
  EXPECT_EQ(image_in_memory(kText)->size(), sizeof kText - 1);
  EXPECT_EQ(image_in_memory("")->size(), 0u);
  EXPECT_FALSE(image_in_memory(nullptr));
  const auto cubin = elf_with_section(".text", std::vector<std::byte>(100));
  EXPECT_EQ(image_in_memory(cubin.data())->size(), cubin.size());
}

// Programs pass containers of many megabytes, which the driver reads only in part and when it needs them.
TEST(Image, ReadsNoMachineCodeToFindThatThereIsNoPtx) {
  const std::size_t page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  auto* memory =
      static_cast<std::byte*>(mmap(nullptr, 6 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(memory, MAP_FAILED);
  const auto store = [&]<class T>(std::size_t offset, T value) { std::memcpy(memory + offset, &value, sizeof value); };
  // Two entries of three pages less their headers, the first with the container's header in front.
  store(0, kFatbinMagic);
  store(4, std::uint16_t{1});
  store(6, static_cast<std::uint16_t>(kFatbinHeaderBytes));
  store(8, std::uint64_t{6 * page - kFatbinHeaderBytes});
  const auto entry = [&](std::size_t offset, std::size_t end, std::uint32_t sm) {
    store(offset, FatbinKind::kElf);
    store(offset + 0x04, std::uint32_t{64});
    store(offset + 0x08, std::uint64_t{end - offset - 64});
    store(offset + 0x1c, sm);
  };
  entry(kFatbinHeaderBytes, 3 * page, 80);
  entry(3 * page, 6 * page, 90);
  for (const std::size_t first : {1u, 4u}) ASSERT_EQ(mprotect(memory + first * page, 2 * page, PROT_NONE), 0);
  const Result<Bytes> image = image_in_memory(memory);
  ASSERT_TRUE(image) << image.error().message;
  EXPECT_EQ(image->size(), 6 * page);
  const auto entries = read_image(*image);
  ASSERT_TRUE(entries) << entries.error().message;
  ASSERT_EQ(entries->size(), 2u);
  EXPECT_EQ((*entries)[1].sm, 90u);
  EXPECT_EQ(choose_ptx(*entries, 90).error().message, "no PTX, only machine code");
  munmap(memory, 6 * page);
}

}  // namespace
}  // namespace gpuctl::ptx
