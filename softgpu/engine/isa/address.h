// Turns the address operand of a memory instruction into checked host addresses, for every lane.
#pragma once

#include "softgpu/engine/isa/lanes.h"

namespace gpuctl::softgpu::engine::GPUCTL_ISA {

/// Fills ctx.address for the lanes of the mask. The operand's register is op[kAt], its offset `imm`.
template <unsigned kBytes, int kAt>
GPUCTL_INLINE void resolve(Context& ctx, const Instruction& in, Mask mask) {
  U64* out = ctx.address;
  const U64 imm = static_cast<U64>(in.imm);
  switch (in.space) {
    case Space::kGlobal: {
      if (in.flags & kAddress32) {
        const U32* a = at<U32>(ctx, in.op[kAt]);
        each(mask, [=](int i) { out[i] = a[i] + imm; });
        check_addresses(ctx, in, mask, kBytes);
        return;
      }
      const U64* a = at<U64>(ctx, in.op[kAt]);
      const int hint = ctx.ranges.hint_of(in);
      const U64 begin = ctx.ranges.begin[hint], size = ctx.ranges.size[hint];
      U64 bad = size < kBytes;
      const U64 last = size - kBytes;
      each(
          mask, [&](int i) __attribute__((always_inline)) {
            const U64 address = a[i] + imm;
            out[i] = address;
            bad |= (address & (kBytes - 1)) | U64(address - begin > last);
          });
      if (bad) check_addresses(ctx, in, mask, kBytes);
      return;
    }
    case Space::kShared:
    case Space::kLocal: {
      const bool shared = in.space == Space::kShared;
      const U64 size = shared ? ctx.shared_bytes : ctx.local_bytes;
      const U64 begin = reinterpret_cast<U64>(shared ? ctx.shared : ctx.local);
      const U64 stride = shared ? 0 : ctx.local_bytes;
      U32 bad = 0;
      const auto place = [&](int i, U64 offset) __attribute__((always_inline)) {
        offset = static_cast<U32>(offset + imm);
        out[i] = begin + stride * static_cast<U64>(i) + offset;
        bad |= (static_cast<U32>(offset) & (kBytes - 1)) | U32(offset + kBytes > size);
      };
      if (in.flags & kAddress32) {
        const U32* a = at<U32>(ctx, in.op[kAt]);
        each(
            mask, [&](int i) __attribute__((always_inline)) { place(i, a[i]); });
      } else {
        const U64* a = at<U64>(ctx, in.op[kAt]);
        each(
            mask, [&](int i) __attribute__((always_inline)) { place(i, a[i]); });
      }
      if (bad) check_window(ctx, in, mask, kBytes, begin, stride, size);
      return;
    }
    case Space::kFrame: {
      const U64 begin = reinterpret_cast<U64>(ctx.local), stride = ctx.local_bytes;
      const U32* frame = ctx.local_frame;
      each(mask, [=](int i) { out[i] = begin + stride * static_cast<U64>(i) + frame[i] + imm; });
      return;
    }
    case Space::kParam: {
      const U64 address = reinterpret_cast<U64>(ctx.params) + imm;
      each(mask, [=](int i) { out[i] = address; });
      return;
    }
  }
}

}  // namespace gpuctl::softgpu::engine::GPUCTL_ISA
