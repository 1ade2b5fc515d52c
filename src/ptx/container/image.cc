#include "ptx/container/image.h"

#include <elf.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <string_view>

namespace gpuctl::ptx {
namespace {

constexpr std::uint16_t kElfMachineCuda = 190;
constexpr unsigned char kElfSymbolManaged = 4;  // a bit of st_other: STO_CUDA_MANAGED of cuda-gdb
constexpr std::uint32_t kWrapperVersions = 2;   // 1: plain, 2: made by the device linker

std::string_view characters(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

bool is_elf(Bytes image) {
  return characters(image).starts_with(std::string_view(ELFMAG, SELFMAG));
}

/// The name of section `header` in the section name table.
std::string_view section_name(Bytes names, const Elf64_Shdr& header) {
  if (header.sh_name >= names.size()) return {};
  const std::string_view rest = characters(names).substr(header.sh_name);
  return rest.substr(0, rest.find('\0'));
}

/// Makes a name fit for messages: the names in a damaged file may hold any bytes.
std::string printable(std::string_view name) {
  std::string text(name);
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return text;
}

struct Section {
  std::string_view name;
  Bytes bytes;
};

Result<std::vector<Section>> read_sections(Bytes image) {
  const auto header = read_at<Elf64_Ehdr>(image, 0);
  if (!header) return fail("ELF offset 0x0: header is cut off");
  if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != ELFDATA2LSB) {
    return fail("ELF offset 0x4: not a 64-bit little-endian file");
  }
  std::vector<Elf64_Shdr> headers;
  for (std::uint64_t i = 0; i < header->e_shnum; ++i) {
    const auto section = read_at<Elf64_Shdr>(image, header->e_shoff + i * sizeof(Elf64_Shdr));
    if (header->e_shoff > image.size() || !section)
      return fail("ELF offset 0x28: section headers lie outside the file");
    headers.push_back(*section);
  }
  if (header->e_shstrndx >= headers.size()) return fail("ELF offset 0x3e: no section names");
  const auto names = slice(image, headers[header->e_shstrndx].sh_offset, headers[header->e_shstrndx].sh_size);
  if (!names) return fail("ELF offset 0x3e: section names lie outside the file");
  std::vector<Section> sections;
  for (const Elf64_Shdr& section : headers) {
    if (section.sh_type == SHT_NOBITS) continue;
    const auto bytes = slice(image, section.sh_offset, section.sh_size);
    const std::string_view name = section_name(*names, section);
    if (!bytes) return fail("ELF section '" + printable(name) + "' lies outside the file");
    sections.push_back({name, *bytes});
  }
  return sections;
}

bool is_cubin(Bytes elf) {
  return read_at<Elf64_Half>(elf, offsetof(Elf64_Ehdr, e_machine)) == kElfMachineCuda;
}

bool holds_fatbins(const Section& section) {
  return (section.name == ".nv_fatbin" || section.name == "__nv_relfatbin") && !section.bytes.empty();
}

Result<std::vector<FatbinEntry>> read_elf(Bytes image) {
  if (is_cubin(image)) {
    FatbinEntry entry;
    entry.kind = FatbinKind::kElf;
    entry.payload = image;
    return std::vector<FatbinEntry>{entry};
  }
  const Result<std::vector<Section>> sections = read_sections(image);
  if (!sections) return sections.error();
  std::vector<FatbinEntry> entries;
  bool found = false;
  for (const Section& section : *sections) {
    if (!holds_fatbins(section)) continue;
    found = true;
    Result<std::vector<FatbinEntry>> some = read_fatbin(section.bytes);
    if (!some) return fail(std::string(section.name) + ": " + some.error().message);
    std::move(some->begin(), some->end(), std::back_inserter(entries));
  }
  if (!found) return fail("ELF file without device code (no .nv_fatbin section)");
  return entries;
}

bool any_is_managed(Bytes symbols) {
  for (std::uint64_t at = 0; const auto symbol = read_at<Elf64_Sym>(symbols, at); at += sizeof(Elf64_Sym))
    if (ELF64_ST_TYPE(symbol->st_info) == STT_OBJECT && (symbol->st_other & kElfSymbolManaged) != 0) return true;
  return false;
}

/// The entry for a PTX text: sm and suffix come from the first `.target sm_90a` outside a comment line.
Result<std::vector<FatbinEntry>> read_text(Bytes image) {
  const std::string_view text = characters(image);
  constexpr std::string_view kTarget = ".target";
  std::size_t at = text.find(kTarget);
  while (at != text.npos) {
    const std::size_t line = text.rfind('\n', at) + 1;  // npos + 1 is 0
    if (text.substr(line, at - line).find("//") == text.npos) break;
    at = text.find(kTarget, at + 1);
  }
  if (at == text.npos) return fail("image is neither PTX (no .target), fatbin nor ELF");
  at = text.find_first_not_of(" \t\r\n", at + kTarget.size());
  if (at == text.npos || !text.substr(at).starts_with("sm_"))
    return fail("PTX with a .target that names no sm_ architecture");
  FatbinEntry entry;
  entry.payload = image;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data() + at + 3, end, entry.sm);
  if (error != std::errc()) return fail("PTX with a .target that names no sm_ architecture");
  if (rest != end && (*rest == 'a' || *rest == 'f')) entry.suffix = *rest;
  return std::vector<FatbinEntry>{entry};
}

/// The bytes of a cubin in memory, up to the end of its last header or section.
Result<Bytes> elf_in_memory(const std::byte* image) {
  Elf64_Ehdr header;
  std::memcpy(&header, image, sizeof header);
  if (header.e_ident[EI_CLASS] != ELFCLASS64) return fail("ELF offset 0x4: not a 64-bit file");
  std::uint64_t size = sizeof header;
  size = std::max(size, header.e_shoff + std::uint64_t{header.e_shnum} * header.e_shentsize);
  size = std::max(size, header.e_phoff + std::uint64_t{header.e_phnum} * header.e_phentsize);
  for (unsigned i = 0; i < header.e_shnum && header.e_shentsize == sizeof(Elf64_Shdr); ++i) {
    Elf64_Shdr section;
    std::memcpy(&section, image + header.e_shoff + i * sizeof section, sizeof section);
    if (section.sh_type != SHT_NOBITS) size = std::max<std::uint64_t>(size, section.sh_offset + section.sh_size);
  }
  return Bytes(image, size);
}

}  // namespace

Result<std::vector<FatbinEntry>> read_image(Bytes image) {
  const auto magic = read_at<std::uint32_t>(image, 0);
  if (magic && *magic == kFatbinMagic) return read_fatbin(image);
  if (is_elf(image)) return read_elf(image);
  return read_text(image);
}

bool has_managed_variables(std::string_view ptx) {
  constexpr std::string_view kManaged = ".managed";  // of `.attribute(.managed)`; names have no dots
  for (std::size_t at = ptx.find(kManaged); at != ptx.npos; at = ptx.find(kManaged, at + 1)) {
    const std::size_t before = ptx.substr(0, at).find_last_not_of(" \t\r\n");
    if (before != ptx.npos && (ptx[before] == '(' || ptx[before] == ',')) return true;
  }
  return false;
}

bool has_managed_variables(const FatbinEntry& code) {
  if (code.kind != FatbinKind::kElf || code.uncompressed_size != 0) return false;
  const Result<std::vector<Section>> sections = read_sections(code.payload);
  return sections && std::any_of(sections->begin(), sections->end(), [](const Section& section) {
           return section.name == ".symtab" && any_is_managed(section.bytes);
         });
}

bool has_device_code(Bytes file) {
  if (!is_elf(file)) return read_at<std::uint32_t>(file, 0) == kFatbinMagic;
  const Result<std::vector<Section>> sections = read_sections(file);
  return is_cubin(file) || (sections && std::any_of(sections->begin(), sections->end(), holds_fatbins));
}

Result<Bytes> image_in_memory(const void* image) {
  const auto* bytes = static_cast<const std::byte*>(image);
  if (bytes == nullptr) return fail("image is a null pointer");
  // Compares byte by byte, so that a short text is not read past its end.
  const auto starts_with = [&](const void* expected, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      if (bytes[i] != static_cast<const std::byte*>(expected)[i]) return false;
    }
    return true;
  };
  if (starts_with(&kFatbinWrapperMagic, 4)) {
    const std::uint32_t version = *read_at<std::uint32_t>(Bytes(bytes, 24), 4);
    if (version == 0 || version > kWrapperVersions) {
      return fail("fatbin wrapper offset 0x4: version " + std::to_string(version) + " is not known");
    }
    const auto* data = *read_at<const std::byte*>(Bytes(bytes, 24), 8);
    if (data == nullptr) return fail("fatbin wrapper offset 0x8: null pointer");
    if (*read_at<std::uint32_t>(Bytes(data, 4), 0) == kFatbinWrapperMagic) {
      return fail("fatbin wrapper offset 0x8: points to another wrapper");
    }
    return image_in_memory(data);
  }
  if (starts_with(&kFatbinMagic, 4)) {
    const Result<std::uint64_t> size = fatbin_size(Bytes(bytes, kFatbinHeaderBytes));
    if (!size) return size.error();
    return Bytes(bytes, *size);
  }
  if (starts_with(ELFMAG, SELFMAG)) return elf_in_memory(bytes);
  return Bytes(bytes, std::strlen(static_cast<const char*>(image)));
}

}  // namespace gpuctl::ptx
