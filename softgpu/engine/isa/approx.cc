// The .approx functions. PTX bounds their error. They are computed in double and rounded, which is within every bound,
// so results differ from a GPU's in the last places.
#include "softgpu/engine/isa/rounding.h"

namespace gpuctl::softgpu::engine::GPUCTL_ISA {
namespace {

struct Rsqrt {
  static GPUCTL_INLINE double apply(double a) { return 1 / __builtin_sqrt(a); }
};
struct Sin {
  static GPUCTL_INLINE double apply(double a) { return __builtin_sin(a); }
};
struct Cos {
  static GPUCTL_INLINE double apply(double a) { return __builtin_cos(a); }
};
struct Lg2 {
  static GPUCTL_INLINE double apply(double a) { return __builtin_log2(a); }
};
struct Ex2 {
  static GPUCTL_INLINE double apply(double a) { return __builtin_exp2(a); }
};
struct Tanh {
  static GPUCTL_INLINE double apply(double a) { return __builtin_tanh(a); }
};

template <class F, bool kFtz>
struct Single {
  static GPUCTL_INLINE float apply(float a) {
    float r = static_cast<float>(F::apply(kFtz ? flush(a) : a));
    if (kFtz) r = flush(r);
    return r != r ? canonical_nan<float>() : r;
  }
};
template <class F>
Handler single(const Selector& s) {
  if (s.type != Type::kF32) return nullptr;
  return s.ftz ? &unary<Single<F, true>, float, float> : &unary<Single<F, false>, float, float>;
}

/// rcp.approx.ftz.f64 and rsqrt.approx.ftz.f64 look at and give the upper 32 bits only.
template <class F>
struct Coarse {
  static GPUCTL_INLINE double apply(double a) {
    const double top = flush(from_bits<double>(to_bits(a) & 0xffffffff00000000));
    return flush(from_bits<double>(to_bits(F::apply(top)) & 0xffffffff00000000));
  }
};
struct Rcp {
  static GPUCTL_INLINE double apply(double a) { return 1 / a; }
};

}  // namespace

Handler select_approx(const Selector& s) {
  switch (s.op) {
    case Op::kRsqrt:
      if (s.type == Type::kF64) return s.ftz ? &unary<Coarse<Rsqrt>, double, double> : &unary<Rsqrt, double, double>;
      return single<Rsqrt>(s);
    case Op::kRcp:
      return s.type == Type::kF64 && s.approx ? &unary<Coarse<Rcp>, double, double> : nullptr;
    case Op::kSin:
      return single<Sin>(s);
    case Op::kCos:
      return single<Cos>(s);
    case Op::kLg2:
      return single<Lg2>(s);
    case Op::kEx2:
      return single<Ex2>(s);
    case Op::kTanh:
      return single<Tanh>(s);
    default:
      return nullptr;
  }
}

}  // namespace gpuctl::softgpu::engine::GPUCTL_ISA
