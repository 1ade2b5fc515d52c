#include "entry.h"

#include <algorithm>

#include "body.h"
#include "function.h"

namespace gpuctl::random_kernels {
namespace {

// A launch is to last long enough to be evicted in the middle, and to take the software GPU no more than some 0.1 s.
constexpr std::uint32_t kLeastBlocks = 150;
constexpr std::uint32_t kMostBlocks = 1500;
constexpr std::uint32_t kMostWarps = 2500;

void choose_shape(Rng& rng, KernelShape& shape) {
  const std::uint32_t threads = rng.chance(50) ? 32 * rng.between(1, 8) : rng.between(1, rng.chance(10) ? 4 : 256);
  shape.block = {threads, 1, 1};
  if (rng.chance(40)) {
    const std::uint32_t y = rng.between(1, std::min(threads, 8u));
    shape.block = {threads / y, y, 1};
    if (rng.chance(50)) {
      const std::uint32_t z = rng.between(1, std::min(shape.block[0], 4u));
      shape.block = {shape.block[0] / z, y, z};
    }
  }
  const std::uint32_t warps = (shape.threads_per_block() + 31) / 32;
  const std::uint32_t blocks =
      rng.between(kLeastBlocks, std::max(kLeastBlocks, std::min(kMostBlocks, kMostWarps / warps)));
  shape.grid = {blocks, 1, 1};
  if (rng.chance(50)) {
    const std::uint32_t y = rng.between(1, 12);
    shape.grid = {std::max(blocks / y, 1u), y, 1};
    if (rng.chance(50)) {
      const std::uint32_t z = rng.between(1, 6);
      shape.grid = {std::max(shape.grid[0] / z, 1u), y, z};
    }
    if (rng.chance(30)) std::swap(shape.grid[0], shape.grid[rng.between(1, 2)]);
  }
}

Traits choose_traits(Rng& rng, const Offer& offer, const KernelShape& shape) {
  Traits traits;
  traits.entry = true;
  traits.shared = rng.chance(75);
  traits.returns = rng.pick({Returns::kNone, Returns::kBounds, Returns::kFirst, Returns::kAnywhere});
  traits.block_returns = rng.chance(30);
  const bool any = traits.returns == Returns::kFirst || traits.returns == Returns::kAnywhere;
  traits.initialised = traits.shared && (any || (traits.returns == Returns::kNone && rng.chance(50)));
  const bool all_stay = traits.returns == Returns::kNone;
  traits.warp = all_stay && shape.threads_per_block() % 32 == 0 && rng.chance(45);
  traits.reductions = all_stay && rng.chance(60);
  traits.hands_over = all_stay && shape.threads_per_block() % 32 == 0 && rng.chance(50);
  traits.local = rng.chance(30);
  if (rng.chance(60)) traits.functions = offer.functions;
  traits.calls_apart = offer.calls == Calls::kAnywhere;
  if (traits.shared && rng.chance(40)) traits.meeting = offer.meeting;
  return traits;
}

/// Writes one entry: `head` first, then what the traits ask for, then `tail`.
class EntryWriter {
 public:
  EntryWriter(Rng& rng, const Traits& traits, KernelShape& shape)
      : rng_(rng), code_(shape.name), traits_(traits), shape_(shape), body_(rng, code_, traits_) {}

  std::string write() {
    read_parameters();
    locate();
    initial_values();
    if (traits_.returns == Returns::kBounds) return_behind_bound();
    if (traits_.initialised) clear_shared();
    if (traits_.local) clear_local();
    if (traits_.returns == Returns::kFirst) {
      Place place;
      place.together = false;
      place.may_return = true;
      body_.statements(rng_.between(1, 3), place);
      body_.thread_return(place);
    }
    Place place;
    place.may_return = traits_.returns == Returns::kAnywhere;
    body_.statements(rng_.between(5, 16), place);
    if (traits_.hands_over) hand_over();
    finish();
    return text();
  }

 private:
  std::string parameter(const std::string& what) const { return shape_.name + "_" + what; }
  std::string word() { return code_.reg(Kind::kWord); }

  void read_parameters() {
    body_.end = code_.label();
    struct Pointer {
      const char* name;
      std::string& to;
    };
    for (const Pointer& pointer : {Pointer{"cells", body_.cells}, {"sums", body_.sums}, {"input", body_.input}}) {
      pointer.to = code_.reg(Kind::kLong);
      code_.add("ld.param.u64 ", pointer.to, ", [", parameter(pointer.name), "]");
      code_.add("cvta.to.global.u64 ", pointer.to, ", ", pointer.to);
    }
    for (unsigned count = rng_.below(5); count > 0; --count) {
      const std::uint32_t bytes = rng_.pick({1u, 2u, 4u, 8u});
      const std::uint64_t value = rng_.bits() >> (64 - 8 * bytes);
      const std::string name = parameter(std::to_string(shape_.arguments.size()));
      const std::string to = word();
      if (bytes == 8) {
        const std::string wide = code_.reg(Kind::kLong);
        code_.add("ld.param.u64 ", wide, ", [", name, "]");
        code_.add("cvt.u32.u64 ", to, ", ", wide);
      } else {
        code_.add("ld.param.u", 8 * bytes, " ", to, ", [", name, "]");
      }
      shape_.arguments.push_back({bytes, value});
      body_.uniform.push_back(to);
    }
  }

  /// a * b + c, of special registers.
  std::string multiply_add(const std::string& a, const char* b, const std::string& c) {
    const std::string to = word(), factor = word();
    code_.add("mov.u32 ", factor, ", ", b);
    code_.add("mad.lo.u32 ", to, ", ", a, ", ", factor, ", ", c);
    return to;
  }
  std::string read(const char* special) {
    const std::string to = word();
    code_.add("mov.u32 ", to, ", ", special);
    return to;
  }

  /// The numbers of thread and block, and the thread's cells.
  void locate() {
    std::string y = read("%tid.z");
    y = multiply_add(y, "%ntid.y", read("%tid.y"));
    body_.thread = multiply_add(y, "%ntid.x", read("%tid.x"));
    y = read("%ctaid.z");
    y = multiply_add(y, "%nctaid.y", read("%ctaid.y"));
    block_ = multiply_add(y, "%nctaid.x", read("%ctaid.x"));
    const std::string offset = word(), wide = code_.reg(Kind::kLong);
    code_.add("mad.lo.u32 ", offset, ", ", block_, ", ", shape_.threads_per_block(), ", ", body_.thread);
    code_.add("mul.wide.u32 ", wide, ", ", offset, ", ", 4 * kCellsPerThread);
    code_.add("add.u64 ", body_.cells, ", ", body_.cells, ", ", wide);
    number_ = offset;
  }

  void initial_values() {
    body_.varying = {word(), word(), word()};
    code_.add("mad.lo.u32 ", body_.varying[0], ", ", number_, ", 0x9E3779B1, ", rng_.below(0x7fffffff));
    code_.add("xor.b32 ", body_.varying[1], ", ", body_.thread, ", ", block_);
    code_.add("ld.global.u32 ", body_.varying[2], ", [", body_.cells, "]");
    for (unsigned more = rng_.below(5); more > 0; --more) {
      body_.varying.push_back(word());
      code_.add("mad.lo.u32 ", body_.varying.back(), ", ", body_.varying[0], ", ", rng_.below(0x7fffffff), ", ", more);
    }
    if (body_.array == kDynamicArray) {  // where it begins is a part of the results
      body_.uniform.push_back(word());
      code_.add("mov.u32 ", body_.uniform.back(), ", ", body_.array);
    }
    for (unsigned more = rng_.between(1, 4); more > 0; --more) {
      body_.uniform.push_back(word());
      code_.add("mad.lo.u32 ", body_.uniform.back(), ", ", block_, ", ", rng_.below(0x7fffffff), ", ", more);
    }
    body_.array_size = word();
    code_.add("mov.u32 ", body_.array_size, ", ", traits_.initialised ? kArrayWords : shape_.threads_per_block());
  }

  /// The usual check. array_size becomes the number of threads that stay, of a block where one does.
  void return_behind_bound() {
    const std::uint32_t threads = shape_.threads_per_block();
    const std::string stays = word(), predicate = code_.reg(Kind::kPredicate);
    if (rng_.chance(50)) {  // by the number in the grid
      const std::uint32_t bound = rng_.between(shape_.threads() / 2, shape_.threads());
      code_.add("mul.lo.u32 ", stays, ", ", block_, ", ", threads);
      code_.add("sub.u32 ", stays, ", ", bound, ", ", stays);
      code_.add("setp.ge.u32 ", predicate, ", ", number_, ", ", bound);
    } else {  // by one in the block, which does no more than bound some of the blocks
      code_.add("rem.u32 ", stays, ", ", body_.uniform.back(), ", ", 2 * threads);
      code_.add("add.u32 ", stays, ", ", stays, ", 1");
      code_.add("setp.ge.u32 ", predicate, ", ", body_.thread, ", ", stays);
    }
    code_.add("min.u32 ", body_.array_size, ", ", stays, ", ", threads);
    body_.leave(predicate);
  }

  void clear_words(const std::string& name, std::uint32_t words) {
    const std::string index = word(), address = word(), step = word(), zero = word();
    const std::string again = code_.label(), after = code_.label(), done = code_.reg(Kind::kPredicate);
    code_.add("mov.u32 ", index, ", ", body_.thread);
    code_.add("mov.u32 ", step, ", ", shape_.threads_per_block());
    code_.add("mov.u32 ", zero, ", ", rng_.below(100));
    code_.place(again);
    code_.add("setp.ge.u32 ", done, ", ", index, ", ", words);
    code_.add("@", done, " bra ", after);
    code_.add("mov.u32 ", address, ", ", name);
    code_.add("mad.lo.u32 ", address, ", ", index, ", 4, ", address);
    code_.add("st.shared.u32 [", address, "], ", zero);
    code_.add("add.u32 ", index, ", ", index, ", ", step);
    code_.add("bra ", again);
    code_.place(after);
  }

  void clear_shared() {
    clear_words(body_.array, kArrayWords);
    clear_words(body_.counters, 8);
    if (!traits_.meeting.empty()) clear_words(kMeetingArray, kMeetingWords);
  }

  void clear_local() {
    const std::string base = code_.reg(Kind::kLong);
    code_.add("mov.u64 ", base, ", ", body_.local);
    for (unsigned i = 0; i < 8; ++i) code_.add("st.local.u32 [", base, "+", 4 * i, "], ", body_.varying[i % 3]);
  }

  /// Such a kernel cannot be persistent: to the next block-task of the same block the barrier might be half full.
  void hand_over() {
    const std::uint32_t threads = shape_.threads_per_block();
    const std::string arrives = code_.reg(Kind::kPredicate), arrive = code_.label(), after = code_.label();
    code_.add("setp.lt.u32 ", arrives, ", ", body_.thread, ", ", 32 * rng_.below(threads / 32));
    code_.add("@", arrives, " bra ", arrive);
    code_.add("bar.sync 1, ", threads);
    code_.add("bra ", after);
    code_.place(arrive);
    code_.add("bar.arrive 1, ", threads);
    code_.place(after);
  }

  void finish() {
    std::vector<std::string> all = body_.varying;
    all.insert(all.end(), body_.uniform.begin(), body_.uniform.end());
    for (unsigned i = 0; i < kCellsPerThread; ++i) {
      const std::string sum = word();
      code_.add("ld.global.u32 ", sum, ", [", body_.cells, "+", 4 * i, "]");
      for (std::size_t r = i; r < all.size(); r += kCellsPerThread) {
        code_.add("mad.lo.u32 ", sum, ", ", sum, ", 31, ", all[r]);
      }
      code_.add("st.global.u32 [", body_.cells, "+", 4 * i, "], ", sum);
    }
    if (traits_.warp && rng_.chance(50)) vote();
    code_.place(body_.end);
    code_.add("ret");
  }

  /// A warp goes on for as many rounds as it voted, and returns at once if for none.
  void vote() {
    const std::string left = word(), less = word(), value = word(), again = code_.label();
    const std::string none = code_.reg(Kind::kPredicate), present = code_.reg(Kind::kPredicate);
    code_.add("vote.sync.ballot.b32 ", left, ", ", body_.condition(false), ", -1");
    code_.place(again);
    code_.add("setp.eq.u32 ", none, ", ", left, ", 0");
    code_.add("@", none, " bra ", body_.end);
    code_.add("shfl.sync.bfly.b32 ", value, "|", present, ", ", body_.varying[0], ", ", rng_.below(32), ", 31, -1");
    code_.add("add.u32 ", body_.varying[0], ", ", body_.varying[0], ", ", value);
    code_.add("st.global.u32 [", body_.cells, "], ", body_.varying[0]);
    code_.add("add.u32 ", less, ", ", left, ", -1");
    code_.add("and.b32 ", left, ", ", left, ", ", less);
    code_.add("bra ", again);
  }

  std::string text() const {
    std::string text = ".visible .entry " + shape_.name + "(\n  .param .u64 " + parameter("cells") +
                       ",\n  .param .u64 " + parameter("sums") + ",\n  .param .u64 " + parameter("input");
    for (std::size_t i = 0; i < shape_.arguments.size(); ++i) {
      text += ",\n  .param .u" + std::to_string(8 * shape_.arguments[i].bytes) + " " + parameter(std::to_string(i));
    }
    text += "\n)\n";
    if (rng_.chance(30)) {
      text += ".maxntid " + std::to_string(shape_.block[0]) + ", " + std::to_string(shape_.block[1]) + ", " +
              std::to_string(shape_.block[2]) + "\n";
    }
    text += "{\n";
    if (!own_array_.empty())
      text += "  .shared .align 4 .b8 " + own_array_ + "[" + std::to_string(4 * kArrayWords) + "];\n";
    if (traits_.initialised) text += "  .shared .align 4 .b8 " + body_.counters + "[32];\n";
    if (traits_.local) text += "  .local .align 4 .b8 " + body_.local + "[32];\n";
    return text + code_.body() + "}\n";
  }

 public:
  /// Chooses where shared and local memory stand. Before write().
  void choose_memory() {
    body_.local = parameter("local");
    body_.counters = parameter("counters");
    if (!traits_.shared) return;
    switch (rng_.below(3)) {
      case 0:
        body_.array = kModuleArray;
        break;
      case 1:
        body_.array = kDynamicArray;
        shape_.dynamic_shared_bytes = 4 * kArrayWords + rng_.below(200);
        break;
      default:
        body_.array = own_array_ = parameter("array");
    }
  }

 private:
  Rng& rng_;
  Code code_;
  const Traits traits_;
  KernelShape& shape_;
  Body body_;
  std::string block_;      ///< register: number of the block
  std::string number_;     ///< register: of the thread in the grid
  std::string own_array_;  ///< name, if the entry declares one
};

}  // namespace

std::string make_entry(Rng& rng, const Offer& offer, KernelShape& shape) {
  choose_shape(rng, shape);
  EntryWriter writer(rng, choose_traits(rng, offer, shape), shape);
  writer.choose_memory();
  return writer.write();
}

}  // namespace gpuctl::random_kernels
