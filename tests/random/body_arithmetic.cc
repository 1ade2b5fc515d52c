// Integer arithmetic, with some floating point whose rounding is written out, so that compilers have no choice.
#include "body.h"

namespace gpuctl::random_kernels {

std::string Body::special(bool together) {
  const char* name = together ? rng_.pick({"%ctaid.x", "%ctaid.y", "%ctaid.z", "%nctaid.x", "%nctaid.y", "%nctaid.z",
                                           "%ntid.x", "%ntid.y", "%ntid.z"})
                              : rng_.pick({"%ctaid.x", "%ctaid.y", "%ctaid.z", "%nctaid.x", "%nctaid.y", "%nctaid.z",
                                           "%ntid.x", "%tid.x", "%tid.y", "%tid.z"});
  const std::string value = word();
  if (rng_.chance(15)) {
    const std::string wide = code_.reg(Kind::kLong);
    code_.add("cvt.u64.u32 ", wide, ", ", name);
    code_.add("cvt.u32.u64 ", value, ", ", wide);
  } else {
    code_.add("mov.u32 ", value, ", ", name);
  }
  return value;
}

std::string Body::operand(bool together) {
  const unsigned what = rng_.below(10);
  if (what == 0) return special(together);
  if (what <= 2) return std::to_string(rng_.chance(50) ? rng_.below(64) : rng_.below(0xffffffff));
  std::vector<std::string>& registers = together || what <= 4 ? uniform : varying;
  return registers[rng_.below(static_cast<std::uint32_t>(registers.size()))];
}

void Body::arithmetic(const Place& place) {
  const std::string& to = target(place);
  bool same = false;  // whether the target is uniform, so its operands must be
  for (const std::string& name : uniform) same = same || name == to;
  // Instructions over registers only: an immediate goes through a mov where PTX wants a register.
  const std::string a = operand(same), b = operand(same), c = operand(same);
  const std::string guard = rng_.chance(20) ? (rng_.chance(50) ? "@" : "@!") + condition(same) + " " : "";
  switch (rng_.below(16)) {
    case 0:
      code_.add(guard, rng_.pick({"add", "sub", "mul.lo", "mul.hi", "min", "max"}), ".u32 ", to, ", ", a, ", ", b);
      break;
    case 1:
      code_.add(guard, rng_.pick({"min", "max", "mul.hi"}), ".s32 ", to, ", ", a, ", ", b);
      break;
    case 2:
    case 3:
      // No mad.hi: of those in an unrolled loop ptxas 13.0 leaves some out (docs/testing.md).
      code_.add(guard, rng_.pick({"mad.lo.u32 ", "mad.lo.s32 ", "sad.u32 "}), to, ", ", a, ", ", b, ", ", c);
      break;
    case 4:
      code_.add(guard, rng_.pick({"and", "or", "xor"}), ".b32 ", to, ", ", a, ", ", b);
      break;
    case 5:
      code_.add(guard, rng_.pick({"shl.b32 ", "shr.u32 ", "shr.s32 "}), to, ", ", a, ", ", rng_.below(32));
      break;
    case 6: {
      const std::string divisor = word();
      code_.add("or.b32 ", divisor, ", ", b, ", ", 1 + rng_.below(100));
      code_.add(guard, rng_.pick({"div", "rem"}), ".u32 ", to, ", ", a, ", ", divisor);
      break;
    }
    case 7:
      code_.add(guard, "shf.", rng_.pick({"l", "r"}), ".wrap.b32 ", to, ", ", a, ", ", b, ", ", c);
      break;
    case 8: {
      // Never three times the same: ptxas 13.0 takes lop3(a, a, a, 232) ^ a for a, whatever form the kernel is in
      // (docs/testing.md).
      const std::string other = code_.reg(Kind::kWord);
      code_.add("xor.b32 ", other, ", ", b, ", ", 1 + 2 * rng_.below(1 << 20));
      code_.add(guard, "lop3.b32 ", to, ", ", a, ", ", other, ", ", c, ", ", rng_.below(256));
      break;
    }
    case 9:
      code_.add(guard, rng_.pick({"popc.b32 ", "clz.b32 ", "brev.b32 ", "not.b32 "}), to, ", ", a);
      break;
    case 10:
      code_.add(guard, "bfi.b32 ", to, ", ", a, ", ", b, ", ", rng_.below(24), ", ", rng_.below(9));
      break;
    case 11:
      code_.add(guard, rng_.pick({"bfe.u32 ", "bfe.s32 "}), to, ", ", a, ", ", rng_.below(24), ", ",
                1 + rng_.below(20));
      break;
    case 12:
      code_.add(guard, "prmt.b32 ", to, ", ", a, ", ", b, ", ", rng_.below(0x8000));
      break;
    case 13: {
      const std::string wide = code_.reg(Kind::kLong);
      code_.add("mul.wide.u32 ", wide, ", ", a, ", ", b);
      code_.add("xor.b64 ", wide, ", ", wide, ", ", rng_.below(0x7fffffff));
      code_.add("shr.u64 ", wide, ", ", wide, ", ", rng_.below(40));
      code_.add(guard, "cvt.u32.u64 ", to, ", ", wide);
      break;
    }
    case 14: {
      const std::string x = code_.reg(Kind::kFloat), y = code_.reg(Kind::kFloat), from = word();
      code_.add("mov.u32 ", from, ", ", a);
      code_.add("cvt.rn.f32.u32 ", x, ", ", from);
      code_.add("fma.rn.f32 ", y, ", ", x, ", 0f3F8CCCCD, ", x);
      code_.add("mul.rn.f32 ", y, ", ", y, ", 0f3EAAAAAB");
      code_.add(guard, "mov.b32 ", to, ", ", y);
      break;
    }
    default:
      code_.add("selp.b32 ", to, ", ", a, ", ", b, ", ", condition(same));
  }
}

}  // namespace gpuctl::random_kernels
