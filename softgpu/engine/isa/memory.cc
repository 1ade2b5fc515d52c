// ld and st in every state space, cp.async as a plain copy, fences.
//
// Weak accesses are plain ones. Everything stronger (volatile, relaxed, acquire, release, mmio) is an atomic access of
// each element, loads with acquire and stores with release order: other OS threads and processes take part.
#include "softgpu/engine/isa/address.h"

namespace gpuctl::softgpu::engine::GPUCTL_ISA {
namespace {

template <class T, int kCount, bool kAtomic>
void load(Context& ctx, const Instruction& in, Mask mask) {
  using S = Slot<T>;
  resolve<sizeof(T) * kCount, 4>(ctx, in, mask);
  S* d[kCount];
  for (int k = 0; k < kCount; ++k) d[k] = at<S>(ctx, in.op[k]);
  const U64* address = ctx.address;
  each(
      mask, [&](int i) __attribute__((always_inline)) {
        const T* p = reinterpret_cast<const T*>(address[i]);
        for (int k = 0; k < kCount; ++k) d[k][i] = put<T>(kAtomic ? __atomic_load_n(p + k, __ATOMIC_ACQUIRE) : p[k]);
      });
}

template <class T, int kCount, bool kAtomic>
void store(Context& ctx, const Instruction& in, Mask mask) {
  using S = Slot<T>;
  resolve<sizeof(T) * kCount, 4>(ctx, in, mask);
  const S* a[kCount];
  for (int k = 0; k < kCount; ++k) a[k] = at<S>(ctx, in.op[k]);
  // One lane after the other: if lanes write to the same address, one of them wins as a whole.
  const U64* address = ctx.address;
  for (; mask != 0; mask &= mask - 1) {
    const int i = __builtin_ctz(mask);
    T* p = reinterpret_cast<T*>(address[i]);
    for (int k = 0; k < kCount; ++k) {
      if (kAtomic)
        __atomic_store_n(p + k, static_cast<T>(a[k][i]), __ATOMIC_RELEASE);
      else
        p[k] = static_cast<T>(a[k][i]);
    }
  }
}

/// A parameter of the kernel: one value for all lanes.
template <class T, int kCount>
void load_param(Context& ctx, const Instruction& in, Mask mask) {
  using S = Slot<T>;
  for (int k = 0; k < kCount; ++k) {
    T value;
    __builtin_memcpy(&value, ctx.params + in.imm + k * sizeof(T), sizeof(T));
    const S v = put<T>(value);
    S* d = at<S>(ctx, in.op[k]);
    each(
        mask, [=](int i) __attribute__((always_inline)) { d[i] = v; });
  }
}

/// cp.async: op[0] shared address, op[1] global address, op[2] bytes to read, the rest of `sub` bytes becomes zero.
/// `imm` is the offset of the shared address, `target` (signed) that of the global one.
template <unsigned kBytes>
void copy_async(Context& ctx, const Instruction& in, Mask mask) {
  Instruction side = in;
  side.space = Space::kShared;
  resolve<kBytes, 0>(ctx, side, mask);
  U64 to[kLanes];
  for (int i = 0; i < kLanes; ++i) to[i] = ctx.address[i];
  const U32* bytes = at<U32>(ctx, in.op[2]);
  side.space = Space::kGlobal;
  side.flags &= static_cast<U16>(~kAddress32);
  side.imm = static_cast<S32>(in.target);
  Mask reading = 0;
  for (int i = 0; i < kLanes; ++i) reading |= Mask(bytes[i] != 0) << i;
  resolve<kBytes, 1>(ctx, side, mask & reading);
  for (; mask != 0; mask &= mask - 1) {
    const int i = __builtin_ctz(mask);
    const U32 n = bytes[i] < kBytes ? bytes[i] : kBytes;
    char* p = reinterpret_cast<char*>(to[i]);
    if (n != 0) __builtin_memcpy(p, reinterpret_cast<const char*>(ctx.address[i]), n);
    __builtin_memset(p + n, 0, kBytes - n);
  }
}

void fence(Context&, const Instruction&, Mask) {
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
void nothing(Context&, const Instruction&, Mask) {}

template <class T>
Handler load_of(const Selector& s) {
  const bool weak = !s.strong;
  if (s.immediate) return s.count == 1 ? &load_param<T, 1> : s.count == 2 ? &load_param<T, 2> : &load_param<T, 4>;
  if (s.count == 1) return weak ? &load<T, 1, false> : &load<T, 1, true>;
  if (s.count == 2) return weak ? &load<T, 2, false> : &load<T, 2, true>;
  return weak ? &load<T, 4, false> : &load<T, 4, true>;
}
template <class T>
Handler store_of(const Selector& s) {
  const bool weak = !s.strong;
  if (s.count == 1) return weak ? &store<T, 1, false> : &store<T, 1, true>;
  if (s.count == 2) return weak ? &store<T, 2, false> : &store<T, 2, true>;
  return weak ? &store<T, 4, false> : &store<T, 4, true>;
}

}  // namespace

Handler select_memory(const Selector& s) {
  switch (s.op) {
    case Op::kLoad:
      if (s.type == Type::kS8) return load_of<S8>(s);
      if (s.type == Type::kS16) return load_of<S16>(s);
      return pick<U8, U16, U32, U64>(bits_of(s.type),
                                     [&](auto t) -> Handler { return load_of<typename decltype(t)::type>(s); });
    case Op::kStore:
      return pick<U8, U16, U32, U64>(bits_of(s.type),
                                     [&](auto t) -> Handler { return store_of<typename decltype(t)::type>(s); });
    case Op::kCopyAsync:
      return s.count == 4 ? &copy_async<4> : s.count == 8 ? &copy_async<8> : s.count == 16 ? &copy_async<16> : nullptr;
    case Op::kFence:
      return &fence;
    case Op::kNop:
    case Op::kPrefetch:
      return &nothing;
    default:
      return nullptr;
  }
}

}  // namespace gpuctl::softgpu::engine::GPUCTL_ISA
