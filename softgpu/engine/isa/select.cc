#include "softgpu/engine/isa/lanes.h"

namespace gpuctl::softgpu::engine::GPUCTL_ISA {

Handler select(const Selector& s) {
  if (Handler h = select_move(s)) return h;
  if (s.op == Op::kCvt || s.op == Op::kCvtPack) return select_convert(s);
  if (s.op == Op::kSetp || s.op == Op::kSet || s.op == Op::kTestp) return select_compare(s);
  if (s.op == Op::kAtom) return select_atomic(s);
  if (Handler h = select_memory(s)) return h;
  switch (s.type) {
    case Type::kF32:
    case Type::kF64:
      if (Handler h = select_approx(s)) return h;
      return select_float(s);
    case Type::kF16:
    case Type::kBf16:
    case Type::kF16x2:
    case Type::kBf16x2:
      return select_half(s);
    default:
      if (Handler h = select_bits(s)) return h;
      return select_integer(s);
  }
}

}  // namespace gpuctl::softgpu::engine::GPUCTL_ISA
