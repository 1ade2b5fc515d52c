#include "polling.h"

#include <vector>

#include "code.h"
#include "rng.h"

namespace gpuctl::random_kernels {
namespace {

class PollingWriter {
 public:
  PollingWriter(std::uint64_t seed, bool waits) : rng_(seed), waits_(waits), code_("poll") {}

  PollingKernel write() {
    levels_ = rng_.below(5);
    pass_on_ = rng_.pick({"plainly", "by shared memory", "by vote", "by shuffle", "by local memory", "by a barrier"});
    std::string text = ".version 7.8\n.target sm_80\n.address_size 64\n\n";
    const bool loop_below = levels_ > 0 && waits_ && rng_.chance(30);
    text += functions(loop_below);
    begin();
    // One thread cannot poll for others that a barrier is to meet in a function: there each polls.
    if (loop_below)
      call(code_, 1, address_, wanted_);
    else
      loop(code_);
    end();
    text += std::string(".visible .entry ") + kPollingName +
            "(.param .u64 arrived_param, .param .u64 words_param)\n{\n" +
            "  .shared .align 4 .b8 cell[128];\n  .local .align 4 .b8 own[16];\n" + code_.body() + "}\n";
    return {text, how_ + ", " + std::to_string(levels_) + " calls, " + (loop_below ? "loop below" : pass_on_) +
                      (between_.empty() ? "" : ", " + between_)};
  }

 private:
  std::string word(Code& code) { return code.reg(Kind::kWord); }

  /// A read of the word at `address`.
  std::string read(Code& code, const std::string& address) {
    const std::string value = word(code);
    const unsigned kind = kind_ = kind_ == kNone ? rng_.below(kKinds) : kind_;
    static constexpr const char* kLoads[] = {"ld.volatile.global.u32",
                                             "ld.relaxed.gpu.global.u32",
                                             "ld.acquire.gpu.global.u32",
                                             "ld.acquire.sys.u32",
                                             "ld.global.cg.u32",
                                             "ld.global.cs.u32",
                                             "ld.global.cv.u32",
                                             "ld.global.L1::no_allocate.u32",
                                             "ld.global.u32",
                                             "ld.u32",
                                             "ld.volatile.u32",
                                             "ld.cg.u32"};
    static_assert(std::size(kLoads) == kFirstAtomic);
    if (kind < kFirstAtomic) {
      how_ = kLoads[kind];
      code.add(how_, " ", value, ", [", address, "]");
    } else if (kind == kCopy) {
      how_ = "cp.async";
      const std::string target = word(code);
      // Each thread has a word of its own, as only its own copies are complete then.
      const std::string lane = word(code);
      code.add("mov.u32 ", lane, ", %laneid");
      code.add("mov.u32 ", target, ", copied");
      code.add("mad.lo.u32 ", target, ", ", lane, ", 4, ", target);
      code.add("cp.async.ca.shared.global [", target, "], [", address, "], 4");
      code.add("cp.async.wait_all");
      code.add("ld.shared.u32 ", value, ", [", target, "]");
    } else {
      static constexpr const char* kAtomics[] = {"atom.global.add.u32", "atom.or.b32", "atom.global.max.u32",
                                                 "atom.global.cas.b32", "atom.relaxed.gpu.global.xor.b32"};
      how_ = kAtomics[kind - kFirstAtomic];
      code.add(how_, " ", value, ", [", address, "], ", kind == kFirstAtomic + 3 ? "0x7fffffff, 0x7fffffff" : "0");
    }
    return value;
  }

  std::string functions(bool loop_below) {
    std::string text = ".shared .align 4 .b8 copied[128];\n\n";
    for (unsigned level = levels_; level > 0; --level) {
      Code code("f" + std::to_string(level));
      const std::string address = code.reg(Kind::kLong), wanted = word(code);
      code.add("ld.param.u64 ", address, ", [address]");
      code.add("ld.param.u32 ", wanted, ", [wanted]");
      std::string value = word(code);
      if (level == levels_ && loop_below) {
        address_ = address;
        wanted_ = wanted;
        pass_on_ = "plainly";
        loop(code);
        code.add("mov.u32 ", value, ", 0");
      } else if (level == levels_) {
        value = read(code, address);
      } else {
        value = call(code, level + 1, address, wanted);
      }
      code.add("st.param.u32 [result], ", value);
      code.add("ret");
      text += ".func (.param .b32 result) f" + std::to_string(level) +
              "(.param .b64 address, .param .b32 wanted)\n{\n" + code.body() + "}\n\n";
    }
    return text;
  }

  std::string call(Code& code, unsigned level, const std::string& address, const std::string& wanted) {
    const std::string value = word(code);
    code.open();
    code.add(".param .b64 param0");
    code.add("st.param.b64 [param0], ", address);
    code.add(".param .b32 param1");
    code.add("st.param.b32 [param1], ", wanted);
    code.add(".param .b32 retval0");
    code.add("call.uni (retval0), f", level, ", (param0, param1)");
    code.add("ld.param.b32 ", value, ", [retval0]");
    code.close();
    return value;
  }

  void begin() {
    address_ = code_.reg(Kind::kLong);
    words_ = code_.reg(Kind::kLong);
    wanted_ = word(code_);
    thread_ = word(code_);
    code_.add("ld.param.u64 ", address_, ", [arrived_param]");
    code_.add("ld.param.u64 ", words_, ", [words_param]");
    if (rng_.chance(50)) code_.add("cvta.to.global.u64 ", address_, ", ", address_);
    code_.add("mov.u32 ", thread_, ", %tid.x");
    code_.add("mov.u32 ", wanted_, ", %nctaid.x");
    if (!waits_) {
      code_.add("mov.u64 ", address_, ", ", words_);
      code_.add("mov.u32 ", wanted_, ", 1");
      return;
    }
    first_ = code_.reg(Kind::kPredicate);
    code_.add("setp.eq.u32 ", first_, ", ", thread_, ", 0");
    code_.add("@", first_, " red.global.add.u32 [", address_, "], 1");
  }

  /// What stands between two reads, or nothing.
  void pause(Code& code) {
    if (!waits_) return;
    static constexpr const char* kBetween[] = {
        "", "membar.cta", "membar.gl", "fence.acq_rel.gpu", "fence.sc.cta", "nanosleep.u32 20", "a counter"};
    const unsigned which = rng_.below(std::size(kBetween));
    between_ = kBetween[which];
    if (which == 0) return;
    if (between_ == "a counter")
      code.add("add.u32 ", spins_, ", ", spins_, ", 1");
    else
      code.add(between_);
  }

  /// The value that one thread or each read, as all come to have it.
  std::string shared_out(Code& code, const std::string& value) {
    const std::string result = word(code), cell = word(code), is = code.reg(Kind::kPredicate);
    if (pass_on_ == "by shared memory") {
      code.add("mov.u32 ", cell, ", cell");
      code.add("@", first(code), " st.shared.u32 [", cell, "], ", value);
      code.add("bar.sync 0");
      code.add("ld.shared.u32 ", result, ", [", cell, "]");
      code.add("bar.sync 0");
    } else if (pass_on_ == "by shuffle") {
      code.add("shfl.sync.idx.b32 ", result, ", ", value, ", 0, 31, -1");
    } else if (pass_on_ == "by local memory") {
      const std::string place = code.reg(Kind::kLong);
      code.add("mov.u64 ", place, ", own");
      code.add("st.local.u32 [", place, "+4], ", value);
      code.add("ld.local.u32 ", result, ", [", place, "+4]");
    } else {
      return value;
    }
    return result;
  }

  std::string first(Code& code) {
    const std::string is = code.reg(Kind::kPredicate), lane = word(code);
    code.add("mov.u32 ", lane, ", %laneid");
    code.add("setp.eq.u32 ", is, ", ", lane, ", 0");
    return is;
  }

  void loop(Code& code) {
    const std::string again = code.label(), after = code.label(), less = code.reg(Kind::kPredicate);
    spins_ = word(code);
    code.add("mov.u32 ", spins_, ", 0");
    code.place(again);
    const bool below = levels_ > 0 && &code == &code_;
    std::string value = below ? call(code, 1, address_, wanted_) : read(code, address_);
    pause(code);
    // A twin ends when it has found what is not 0; as all its threads read the same, all find it at the same time.
    if (!waits_) code.add("add.u64 ", address_, ", ", address_, ", 4");
    value = shared_out(code, value);
    code.add("setp.lt.u32 ", less, ", ", value, ", ", wanted_);
    std::string goes_on = less;
    if (pass_on_ == "by vote") {
      goes_on = code.reg(Kind::kPredicate);
      code.add("vote.sync.any.pred ", goes_on, ", ", less, ", -1");
    } else if (pass_on_ == "by a barrier") {
      goes_on = code.reg(Kind::kPredicate);
      code.add("barrier.cta.red.or.pred ", goes_on, ", 0, ", less);
    } else if (rng_.chance(30)) {
      const std::string as_word = word(code), is = code.reg(Kind::kPredicate);
      code.add("selp.u32 ", as_word, ", 1, 0, ", less);
      code.add("setp.ne.u32 ", is, ", ", as_word, ", 0");
      goes_on = is;
    }
    if (rng_.chance(50)) {
      code.add("@", goes_on, " bra ", again);
    } else {
      code.add("@!", goes_on, " bra ", after);
      code.add("bra ", again);
      code.place(after);
    }
  }

  void end() {
    const std::string at = code_.reg(Kind::kLong), block = word(code_);
    code_.add("mov.u32 ", block, ", %ctaid.x");
    code_.add("rem.u32 ", block, ", ", block, ", ", kPollingWords / 2);
    code_.add("mul.wide.u32 ", at, ", ", block, ", 4");
    code_.add("add.u64 ", at, ", ", at, ", ", words_);
    code_.add("st.global.u32 [", at, "+", 4 * kPollingWords, "], ", wanted_);
    code_.add("ret");
  }

  static constexpr unsigned kFirstAtomic = 12, kCopy = 17, kKinds = 18, kNone = ~0u;
  Rng rng_;
  const bool waits_;
  Code code_;
  unsigned levels_ = 0, kind_ = kNone;
  std::string pass_on_, how_, between_;
  std::string address_, words_, wanted_, thread_, first_, spins_;
};

}  // namespace

PollingKernel make_polling(std::uint64_t seed, bool waits) {
  return PollingWriter(seed, waits).write();
}

}  // namespace gpuctl::random_kernels
