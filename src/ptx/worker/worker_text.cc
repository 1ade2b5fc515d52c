#include "ptx/worker/worker_text.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "ptx/persistent_abi.h"
#include "ptx/worker/shared_words.h"

namespace gpuctl::ptx::pass {
namespace {

// Constants of the template, beside those of persistent_abi.h.
constexpr std::uint32_t kNumberBits = kClosed - 1;
constexpr std::uint32_t kLooksEachBits = kLooksEach - 1;
constexpr std::uint32_t kAllSms = kMaxSms << 16;

struct Fragment {
  enum class Kind : std::uint8_t { kText, kNumber, kArgument, kSharedWord, kWhen, kUnless, kOtherwise, kEnd };
  Kind kind;
  std::string_view text = {};
  std::uint64_t number = 0;  ///< kArgument and kSharedWord: the offset
  bool WorkerShape::*flag = nullptr;
};

using Kind = Fragment::Kind;

// The elements of the array that embed_worker.py writes.
constexpr Fragment text(std::string_view plain) {
  return {Kind::kText, plain};
}
constexpr Fragment number(std::uint64_t value) {
  return {Kind::kNumber, {}, value};
}
constexpr Fragment argument(std::size_t offset) {
  return {Kind::kArgument, {}, offset};
}
constexpr Fragment shared_word(std::size_t offset) {
  return {Kind::kSharedWord, {}, offset};
}
constexpr Fragment when(bool WorkerShape::*flag) {
  return {Kind::kWhen, {}, 0, flag};
}
constexpr Fragment unless(bool WorkerShape::*flag) {
  return {Kind::kUnless, {}, 0, flag};
}
constexpr Fragment otherwise() {
  return {Kind::kOtherwise};
}
constexpr Fragment end() {
  return {Kind::kEnd};
}

#include "ptx/worker/worker_text.inc"  // kWorkerFragments

// A post is one store of four words: left, progress, task_ns and entered. The last store writes started and done
// together.
static_assert(offsetof(HostSlot, left) == 16 && offsetof(HostSlot, progress) == 20 &&
              offsetof(HostSlot, task_ns) == 24 && offsetof(HostSlot, entered) == 28 &&
              offsetof(HostSlot, started) == 0 && offsetof(HostSlot, done) == 4);
// A load of two words reads polling and range; a load of four reads left, a reserved word, posted and task_ns. One
// 64-bit atomic adds to next and gone.
static_assert(offsetof(DeviceSlot, next) % 8 == 0 && offsetof(DeviceSlot, gone) == offsetof(DeviceSlot, next) + 4 &&
              offsetof(DeviceSlot, polling) % 8 == 0 &&
              offsetof(DeviceSlot, range) == offsetof(DeviceSlot, polling) + 4 &&
              offsetof(DeviceSlot, left) % 16 == 0 && offsetof(DeviceSlot, posted) == offsetof(DeviceSlot, left) + 8 &&
              offsetof(DeviceSlot, task_ns) == offsetof(DeviceSlot, left) + 12);
// A worker of an agent's grid stores this flag as SharedWords::counted: it counts as counted out.
static_assert(kAgentGrid == 1);
// The text `here` uses 252 and 3 to find the word and the byte of an SM.
static_assert(kMaxSms == 256);

}  // namespace

std::string worker_text(const WorkerShape& shape, std::string_view args) {
  std::string out;
  std::vector<bool> taken{true};  // whether the text counts, at each depth of conditions
  for (const Fragment& fragment : kWorkerFragments) {
    switch (fragment.kind) {
      case Kind::kWhen:
        taken.push_back(shape.*fragment.flag);
        continue;
      case Kind::kUnless:
        taken.push_back(!(shape.*fragment.flag));
        continue;
      case Kind::kOtherwise:
        taken.back() = !taken.back();
        continue;
      case Kind::kEnd:
        taken.pop_back();
        continue;
      default:
        break;
    }
    if (std::find(taken.begin(), taken.end(), false) != taken.end()) continue;
    const std::string value = std::to_string(fragment.number);
    switch (fragment.kind) {
      case Kind::kArgument:
        out.append("[").append(args).append("+").append(value).append("]");
        break;
      case Kind::kSharedWord:
        out.append("gpuslice_shared").append(fragment.number == 0 ? "" : "+" + value);
        break;
      case Kind::kNumber:
        out += value;
        break;
      default:
        out += fragment.text;
    }
  }
  return out;
}

}  // namespace gpuctl::ptx::pass
