// Shared memory, barriers and warps: what needs the threads of a block to come together.
//
// Everything here that writes shared memory ends with a barrier, so it can be read anywhere; whoever writes puts a
// barrier first when somebody may have read since the last one.
#include "body.h"

namespace gpuctl::random_kernels {

void Body::barrier() {
  code_.add(rng_.chance(80) ? "bar.sync 0" : rng_.pick({"barrier.sync.aligned 0", "barrier.sync 0", "bar.cta.sync 0"}));
  read_since_barrier_ = false;
}

/// Each thread writes a cell of its own.
void Body::exchange(const Place& place) {
  if (read_since_barrier_ || (traits_.initialised && !readable_)) barrier();
  std::string cell = thread;
  const std::string address = word();
  if (traits_.initialised && rng_.chance(50)) {
    cell = word();
    code_.add("xor.b32 ", cell, ", ", thread, ", ", rng_.below(256));
  }
  code_.add("mov.u32 ", address, ", ", array);
  code_.add("mad.lo.u32 ", address, ", ", cell, ", 4, ", address);
  code_.add("st.shared.u32 [", address, "], ", varying[rng_.below(static_cast<std::uint32_t>(varying.size()))]);
  barrier();
  readable_ = true;
  if (rng_.chance(70)) read_shared(place);
}

void Body::read_shared(const Place& place) {
  if (!readable_) {
    if (!place.together || !traits_.initialised) return;
    barrier();
    readable_ = true;
  }
  const bool same = place.together && rng_.chance(15);
  const std::string cell = word(), address = word(), old = word();
  if (same) {
    code_.add("mov.u32 ", cell, ", 0");
  } else {
    code_.add("add.u32 ", cell, ", ", thread, ", ", operand(false));
    code_.add("rem.u32 ", cell, ", ", cell, ", ", array_size);
  }
  code_.add("mov.u32 ", address, ", ", array);
  code_.add("mad.lo.u32 ", address, ", ", cell, ", 4, ", address);
  if (rng_.chance(20)) {
    const std::string generic = code_.reg(Kind::kLong);
    code_.add("cvt.u64.u32 ", generic, ", ", address);
    code_.add("cvta.shared.u64 ", generic, ", ", generic);
    code_.add("ld.u32 ", old, ", [", generic, "]");
  } else {
    code_.add("ld.shared.u32 ", old, ", [", address, "]");
  }
  std::vector<std::string>& registers = same ? uniform : varying;
  const std::string& to = registers[rng_.below(static_cast<std::uint32_t>(registers.size()))];
  code_.add(rng_.pick({"xor.b32 ", "add.u32 ", "max.u32 "}), to, ", ", to, ", ", old);
  read_since_barrier_ = true;
}

/// Atomics on shared words.
void Body::count(const Place&) {
  if (read_since_barrier_ || !readable_) barrier();
  const std::string cell = word(), address = word(), old = word();
  code_.add("and.b32 ", cell, ", ", operand(false), ", 7");
  code_.add("mov.u32 ", address, ", ", counters);
  code_.add("mad.lo.u32 ", address, ", ", cell, ", 4, ", address);
  const std::string guard = rng_.chance(50) ? "@" + condition(false) + " " : "";
  code_.add(guard, "red.shared.add.u32 [", address, "], ", operand(false));
  barrier();
  readable_ = true;
  code_.add("ld.shared.u32 ", old, ", [", counters, "+", 4 * rng_.below(8), "]");
  std::string& to = uniform[rng_.below(static_cast<std::uint32_t>(uniform.size()))];
  code_.add("add.u32 ", to, ", ", to, ", ", old);
  read_since_barrier_ = true;
}

/// A barrier that tells all threads how many, or whether any or all, bring a condition.
void Body::reduce(const Place&) {
  const std::string predicate = condition(false);
  const std::string& to = uniform[rng_.below(static_cast<std::uint32_t>(uniform.size()))];
  if (rng_.chance(50)) {
    code_.add("bar.red.popc.u32 ", to, ", 0, ", predicate);
  } else if (rng_.chance(50)) {  // as the compiler writes __syncthreads_or, with names that are taken outside
    const std::string some = word();
    code_.add("selp.b32 ", some, ", 1, 0, ", predicate);
    code_.open();
    code_.add(".reg .pred %p0, %p1");
    code_.add("setp.ne.u32 %p0, ", some, ", 0");
    code_.add("bar.red.or.pred %p1, 0, %p0");
    code_.add("selp.b32 ", to, ", ", rng_.below(100), ", ", to, ", %p1");
    code_.close();
  } else {
    const std::string all = code_.reg(Kind::kPredicate);
    code_.add(rng_.pick({"bar.red.or.pred ", "bar.red.and.pred "}), all, ", 0, ", predicate);
    code_.add("selp.b32 ", to, ", ", rng_.below(100), ", ", to, ", ", all);
  }
  read_since_barrier_ = false;
}

void Body::meet(const Place&) {
  std::string& to = varying[rng_.below(static_cast<std::uint32_t>(varying.size()))];
  const std::string value = call_function(traits_.meeting, {to, thread, array_size});
  code_.add("add.u32 ", to, ", ", to, ", ", value);
}

void Body::warp(const Place&) {
  const std::string& to = varying[rng_.below(static_cast<std::uint32_t>(varying.size()))];
  const std::string value = word();
  if (rng_.chance(60)) {
    const std::string present = code_.reg(Kind::kPredicate);
    code_.add("shfl.sync.", rng_.pick({"bfly", "idx"}), ".b32 ", value, "|", present, ", ", to, ", ", rng_.below(32),
              ", 31, -1");
  } else {
    code_.add("vote.sync.ballot.b32 ", value, ", ", condition(false), ", -1");
  }
  code_.add("add.u32 ", to, ", ", to, ", ", value);
}

}  // namespace gpuctl::random_kernels
