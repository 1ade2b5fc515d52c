// Fatbin containers: a header of 16 bytes, then entries, each one compiled form of the same device code.
//
//   container: u32 0xBA55ED50 | u16 version 1 | u16 header size 16 | u64 bytes that follow the header
//   entry:     00 u16 kind | 02 u16 | 04 u32 header size | 08 u64 payload size (padded to 8) | 10 u32 compressed size
//              (0: raw) | 14 u32 offset of the option block (0: none) | 18 u16 minor | 1a u16 major | 1c u32 sm |
//              20 u32 name offset | 24 u32 name length | 28 u64 flags | 30 u64 | 38 u64 uncompressed size (0: raw)
//   options:   u32 offset of the string | u32 its length; all offsets count from the start of the entry
//
// Derived from the output of nvcc 12 and 13. A container that differs is an error; nothing is guessed.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "ptx/container/bytes.h"

namespace gpuctl::ptx {

enum class FatbinKind : std::uint16_t { kPtx = 1, kElf = 2, kLtoIr = 8 };

inline constexpr std::uint32_t kFatbinMagic = 0xBA55ED50;
inline constexpr std::size_t kFatbinHeaderBytes = 16;
inline constexpr std::uint64_t kFatbinDebug = 0x2;
inline constexpr std::uint64_t kFatbinLz4 = 0x2000;
inline constexpr std::uint64_t kFatbinZstd = 0x8000;
inline constexpr std::uint64_t kFatbinArchSpecific = 0x100000;    // sm_90a
inline constexpr std::uint64_t kFatbinFamilySpecific = 0x200000;  // sm_100f

/// One entry. `payload` points into the image.
struct FatbinEntry {
  FatbinKind kind = FatbinKind::kPtx;
  std::uint32_t sm = 0;  ///< 90 for sm_90
  char suffix = '\0';    ///< 'a' or 'f' of the architecture, or none
  std::uint64_t flags = 0;
  std::string options;                  ///< for ptxas, without blanks around: `-maxrregcount=32`
  std::uint64_t offset = 0;             ///< of the entry in the image, for messages
  Bytes payload;                        ///< as stored, padding cut off where the size is known
  std::uint64_t uncompressed_size = 0;  ///< 0: the payload is raw
};

/// The entries of the containers in `image`, which follow each other 8-aligned from its start. Errors name the offset
/// and the field.
Result<std::vector<FatbinEntry>> read_fatbin(Bytes image);

/// Bytes of the container that `header`, its first 16 bytes, belongs to, the header included.
Result<std::uint64_t> fatbin_size(Bytes header);

/// The text of a PTX entry, decompressed, without the NULs at its end.
Result<std::string> ptx_text(const FatbinEntry& entry);

/// The index of the PTX entry that a device of architecture `device_sm` (90 for 9.0) should run: the highest one it can
/// run. Plain PTX runs on its own and later architectures, `a` PTX only on its own, `f` PTX on its family from its own
/// architecture on. The error is the reason why there is none.
Result<std::size_t> choose_ptx(std::span<const FatbinEntry> entries, std::uint32_t device_sm);

/// Whether there is machine code for such a device: code of the same major number and no later minor number, `a` code
/// of its own architecture, or `f` code of its family.
bool has_machine_code(std::span<const FatbinEntry> entries, std::uint32_t device_sm);

}  // namespace gpuctl::ptx
