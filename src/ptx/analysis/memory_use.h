// What instructions do with memory that other blocks can reach: global memory, also through generic addresses.
#pragma once

#include <cstdint>

#include "ptx/syntax/syntax.h"

namespace gpuctl::ptx {

/// Bits, of one instruction, or of a function with everything it calls.
enum MemoryUse : std::uint16_t {
  kReadsPlain = 1,      ///< loads with no hint that somebody else may write there
  kReadsHinted = 2,     ///< loads past the first cache: .cg, .cs, .lu, L1::no_allocate
  kReadsMarked = 4,     ///< volatile, relaxed, acquire, mmio, .cv: the program says that others write there
  kSwaps = 8,           ///< atomics that may find the same value for ever
  kCounts = 16,         ///< atomics that find another value each time: additions of a constant that is not zero
  kStores = 32,         ///< to any memory but that of a call's parameters
  kFences = 64,         ///< any fence, or a pause
  kFencesGrid = 128,    ///< a fence that is for other blocks
  kStoresGlobal = 512,  ///< to global memory, as far as the instruction says
  kUnreadable = 256,    ///< an instruction of which nothing is known
  /// Reads that are there to see what others write.
  kReadsOthers = kReadsHinted | kReadsMarked | kSwaps,
  kReads = kReadsOthers | kReadsPlain | kCounts,
};

/// As far as the instruction itself says it. A generic address may be that of shared or local memory.
std::uint16_t memory_use(const Instruction& instruction);

/// The address operand of a load, store, atomic or reduction; of a copy, the one it reads from. Null if there is none.
const Operand* address_of(const Instruction& instruction);

}  // namespace gpuctl::ptx
