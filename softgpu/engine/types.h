// The scalar types and instruction variants of PTX as the engine names them.
#pragma once

#include <cstdint>

namespace gpuctl::softgpu::engine {

enum class Type : std::uint8_t {
  kNone,
  kPred,
  kU8,
  kU16,
  kU32,
  kU64,
  kS8,
  kS16,
  kS32,
  kS64,
  kB8,
  kB16,
  kB32,
  kB64,
  kF16,
  kBf16,
  kF32,
  kF64,
  kF16x2,
  kBf16x2,
  kU16x2,
  kS16x2,
};

/// Bytes of a value of that type; 0 for kNone and kPred.
constexpr unsigned size_of(Type t) {
  switch (t) {
    case Type::kNone:
    case Type::kPred:
      return 0;
    case Type::kU8:
    case Type::kS8:
    case Type::kB8:
      return 1;
    case Type::kU16:
    case Type::kS16:
    case Type::kB16:
    case Type::kF16:
    case Type::kBf16:
      return 2;
    case Type::kU64:
    case Type::kS64:
    case Type::kB64:
    case Type::kF64:
      return 8;
    default:
      return 4;
  }
}

constexpr bool is_signed(Type t) {
  return t == Type::kS8 || t == Type::kS16 || t == Type::kS32 || t == Type::kS64;
}
constexpr bool is_float(Type t) {
  return t >= Type::kF16 && t <= Type::kBf16x2;
}

/// Turns untyped types into unsigned ones; other types stay.
constexpr Type without_bits(Type t) {
  switch (t) {
    case Type::kB8:
      return Type::kU8;
    case Type::kB16:
      return Type::kU16;
    case Type::kB32:
      return Type::kU32;
    case Type::kB64:
      return Type::kU64;
    default:
      return t;
  }
}

/// The unsigned integer of the same size, for operations that only move or combine bits.
constexpr Type bits_of(Type t) {
  switch (size_of(t)) {
    case 1:
      return Type::kU8;
    case 2:
      return Type::kU16;
    case 4:
      return Type::kU32;
    case 8:
      return Type::kU64;
    default:
      return t;
  }
}

enum class Round : std::uint8_t { kNearest, kZero, kDown, kUp, kAway };  // of floats: rn rz rm rp; kAway: rna

enum class Compare : std::uint8_t {
  kEq,
  kNe,
  kLt,
  kLe,
  kGt,
  kGe,
  kEqu,
  kNeu,
  kLtu,
  kLeu,
  kGtu,
  kGeu,  // true if an operand is NaN
  kNum,
  kNan,
};

enum class Combine : std::uint8_t { kNone, kAnd, kOr, kXor };

/// State spaces of memory operands, distinguished where the address computation differs.
enum class Space : std::uint8_t {
  kGlobal,  ///< also generic and const: the address is a host address
  kShared,  ///< offset in the block's shared memory
  kLocal,   ///< offset in the thread's local memory
  kFrame,   ///< a named variable of the current call in the thread's local memory
  kParam,   ///< a named parameter of the kernel
};

}  // namespace gpuctl::softgpu::engine
