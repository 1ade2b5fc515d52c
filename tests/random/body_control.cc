// Conditions, branches, loops and returns.
#include "body.h"

namespace gpuctl::random_kernels {

std::string Body::condition(bool together) {
  const std::vector<std::string>& registers = together ? uniform : varying;
  const std::string a = registers[rng_.below(static_cast<std::uint32_t>(registers.size()))];
  const std::string predicate = code_.reg(Kind::kPredicate);
  const char* compare = rng_.pick({"eq", "ne", "lt", "le", "gt", "ge"});
  if (rng_.chance(50)) {  // about as often true as not
    const std::string masked = word();
    const std::uint32_t mask = rng_.pick({1u, 2u, 3u, 5u, 7u, 15u});
    code_.add("and.b32 ", masked, ", ", a, ", ", mask);
    code_.add("setp.", compare, ".u32 ", predicate, ", ", masked, ", ", rng_.below(mask + 1));
  } else {
    const char* type = rng_.pick({".u32 ", ".s32 "});
    const std::string b = operand(together);
    code_.add("setp.", compare, type, predicate, ", ", a, ", ", b);
  }
  if (rng_.chance(20)) {
    const std::string both = code_.reg(Kind::kPredicate), b = operand(together);
    code_.add("setp.", rng_.pick({"lt", "ge", "ne"}), rng_.pick({".and", ".or", ".xor"}), ".u32 ", both, ", ", a, ", ",
              b, ", ", predicate);
    return both;
  }
  return predicate;
}

void Body::branch(const Place& place) {
  Place inner = place;
  inner.together = place.together && rng_.chance(50);
  ++inner.depth;
  const std::string predicate = condition(inner.together), otherwise = code_.label(), after = code_.label();
  const bool has_else = rng_.chance(50);
  const char* uni = inner.together && rng_.chance(30) ? "bra.uni " : "bra ";
  const bool readable = readable_, read = read_since_barrier_;
  code_.add(rng_.pick({"@", "@!"}), predicate, " ", uni, has_else ? otherwise : after);
  statements(rng_.between(1, 4), inner);
  const bool readable_then = readable_, read_then = read_since_barrier_;
  readable_ = readable;
  read_since_barrier_ = read;
  if (has_else) {
    code_.add(uni, after);
    code_.place(otherwise);
    statements(rng_.between(1, 4), inner);
  }
  code_.place(after);
  read_since_barrier_ = read_since_barrier_ || read_then;
  readable_ = readable_ && readable_then;
}

void Body::loop(const Place& place) {
  Place inner = place;
  inner.together = place.together && rng_.chance(50);
  ++inner.depth;
  const std::uint32_t mask = rng_.pick({1u, 3u});
  inner.rounds *= mask + 1;
  const std::string from = operand(inner.together), most = word(), round = word();
  const std::string again = code_.label(), after = code_.label();
  const bool test_first = rng_.chance(60);
  code_.add("and.b32 ", most, ", ", from, ", ", mask);
  code_.add("mov.u32 ", round, ", 0");
  const bool readable = readable_;
  code_.place(again);
  if (test_first) {
    const std::string done = code_.reg(Kind::kPredicate);
    code_.add("setp.ge.u32 ", done, ", ", round, ", ", most);
    code_.add("@", done, " bra ", after);
  }
  read_since_barrier_ = traits_.shared;  // in the round before, perhaps
  statements(rng_.between(1, 4), inner);
  if (rng_.chance(30)) {
    const std::string over = condition(inner.together);
    code_.add("@", over, " bra ", after);
    statements(1, inner);
  }
  code_.add("add.u32 ", round, ", ", round, ", 1");
  if (test_first) {
    code_.add("bra ", again);
  } else {
    const std::string go_on = code_.reg(Kind::kPredicate);
    code_.add("setp.le.u32 ", go_on, ", ", round, ", ", most);
    code_.add("@", go_on, " bra ", again);
  }
  code_.place(after);
  read_since_barrier_ = traits_.shared;
  readable_ = readable;
}

void Body::leave(const std::string& predicate) {
  if (!traits_.entry) {  // a function leaves with a result
    const std::string go_on = code_.label();
    code_.add("@!", predicate, " bra ", go_on);
    code_.add("st.param.b32 [", result, "], ", varying[rng_.below(static_cast<std::uint32_t>(varying.size()))]);
    code_.add("ret");
    code_.place(go_on);
    return;
  }
  switch (rng_.below(5)) {
    case 0:
      code_.add("@", predicate, " ret");
      break;
    case 1:
      code_.add("@", predicate, " exit");
      break;
    case 2:
      code_.add("@", predicate, " bra ", end);
      break;
    default: {
      const std::string go_on = code_.label();
      code_.add("@!", predicate, " bra ", go_on);
      if (rng_.chance(50)) {  // leaves a mark
        code_.add("st.global.u32 [", cells, "+", 4 * rng_.below(4), "], ", varying[0]);
      }
      if (rng_.chance(50)) {
        code_.add(rng_.pick({"ret", "exit"}));
      } else {
        code_.add("bra ", end);
      }
      code_.place(go_on);
    }
  }
}

void Body::thread_return(const Place&) {
  const std::string value = word(), predicate = code_.reg(Kind::kPredicate);
  switch (rng_.below(4)) {
    case 0:  // the last threads of the block
      code_.add("setp.gt.u32 ", predicate, ", ", thread, ", ", rng_.between(1, 255));
      break;
    case 1:  // one warp
      code_.add("shr.u32 ", value, ", ", thread, ", 5");
      code_.add("setp.eq.u32 ", predicate, ", ", value, ", ", rng_.below(8));
      break;
    case 2:  // lanes here and there
      code_.add("and.b32 ", value, ", ", varying[rng_.below(static_cast<std::uint32_t>(varying.size()))], ", 15");
      code_.add("setp.eq.u32 ", predicate, ", ", value, ", ", rng_.below(16));
      break;
    default:  // warps here and there, in some blocks
      code_.add("shr.u32 ", value, ", ", thread, ", 5");
      code_.add("xor.b32 ", value, ", ", value, ", ", uniform[rng_.below(static_cast<std::uint32_t>(uniform.size()))]);
      code_.add("and.b32 ", value, ", ", value, ", 7");
      code_.add("setp.eq.u32 ", predicate, ", ", value, ", ", rng_.below(8));
  }
  leave(predicate);
}

void Body::block_return(const Place&) {
  const std::string value = word(), predicate = code_.reg(Kind::kPredicate);
  code_.add("mul.lo.u32 ", value, ", ", uniform[rng_.below(static_cast<std::uint32_t>(uniform.size()))],
            ", 0x9E3779B1");
  code_.add("shr.u32 ", value, ", ", value, ", 28");
  code_.add("setp.eq.u32 ", predicate, ", ", value, ", ", rng_.below(16));
  leave(predicate);
}

}  // namespace gpuctl::random_kernels
