#include "ptx/worker/names.h"

#include <cstddef>

#include "ptx/persistent_abi.h"

namespace gpuctl::ptx::pass {
namespace {

/// Sets p if SM r1 is not in range r8.
constexpr std::string_view kOutside = R"(
  shr.u32 %gpuslice_r5, %gpuslice_r8, 16;
  and.b32 %gpuslice_r4, %gpuslice_r8, 0xffff;
  setp.lt.u32 %gpuslice_p, %gpuslice_r1, %gpuslice_r4;
  setp.ge.or.u32 %gpuslice_p, %gpuslice_r1, %gpuslice_r5, %gpuslice_p;
)";

/// Sets r11 to how many numbers to claim from r6 on. r10: the total.
constexpr std::string_view kSize = R"(
  ld.param.u32 %gpuslice_r5, [@TAPER];
  sub.u32 %gpuslice_r3, %gpuslice_r10, %gpuslice_r6;
  shr.u32 %gpuslice_r5, %gpuslice_r3, %gpuslice_r5;
  ld.param.u32 %gpuslice_r3, [@CHUNK];
  and.b32 %gpuslice_r4, %gpuslice_r3, 0xffff;
  min.u32 %gpuslice_r5, %gpuslice_r5, %gpuslice_r4;
  shr.u32 %gpuslice_r3, %gpuslice_r3, 16;
  max.u32 %gpuslice_r11, %gpuslice_r5, %gpuslice_r3;
)";

/// Turns number r4 into the number of its block-task (task_order()), in r4. Sets r8 to the step.
constexpr std::string_view kInOrder = R"(
  ld.param.u32 %gpuslice_r2, [@ORDER];
  and.b32 %gpuslice_r8, %gpuslice_r2, 255;
  shr.u32 %gpuslice_r2, %gpuslice_r2, 8;
  shr.u32 %gpuslice_r4, %gpuslice_r4, %gpuslice_r2;
  bfe.u32 %gpuslice_r6, %gpuslice_r4, 0, %gpuslice_r8;
  shr.u32 %gpuslice_r4, %gpuslice_r4, %gpuslice_r8;
  add.u32 %gpuslice_r2, %gpuslice_r2, %gpuslice_r8;
  shl.b32 %gpuslice_r4, %gpuslice_r4, %gpuslice_r2;
  add.u32 %gpuslice_r4, %gpuslice_r4, %gpuslice_r6;
)";

/// Sets d1 to the DeviceSlot's address plus the offset in `here` of the word that holds SM r1's byte, and r2 to 1 in
/// that byte. d0: the slot.
constexpr std::string_view kHere = R"(
  and.b32 %gpuslice_r2, %gpuslice_r1, 252;
  cvt.u64.u32 %gpuslice_d1, %gpuslice_r2;
  add.u64 %gpuslice_d1, %gpuslice_d0, %gpuslice_d1;
  and.b32 %gpuslice_r2, %gpuslice_r1, 3;
  shl.b32 %gpuslice_r2, %gpuslice_r2, 3;
  mov.u32 %gpuslice_r0, 1;
  shl.b32 %gpuslice_r2, %gpuslice_r0, %gpuslice_r2;
)";

/// Sets r0 to the number of threads of the block.
constexpr std::string_view kThreads = R"(
  mov.u32 %gpuslice_r0, %ntid.x;
  mov.u32 %gpuslice_r2, %ntid.y;
  mul.lo.u32 %gpuslice_r0, %gpuslice_r0, %gpuslice_r2;
  mov.u32 %gpuslice_r2, %ntid.z;
  mul.lo.u32 %gpuslice_r0, %gpuslice_r0, %gpuslice_r2;
)";

/// Adds the worker to `gone` if it is not counted yet, and finds whether it is the holder. r4: the shared word +56,
/// before and after. r3: workers, d0: the slot.
constexpr std::string_view kCountOut = R"(
  setp.eq.u32 %gpuslice_p, %gpuslice_r4, 0;
  mov.u32 %gpuslice_r5, 1;
  @%gpuslice_p atom.global.add.u32 %gpuslice_r5, [%gpuslice_d0+@GONE], %gpuslice_r5;
  add.u32 %gpuslice_r5, %gpuslice_r5, 1;
  @%gpuslice_p mov.u32 %gpuslice_r4, 1;
  setp.eq.and.u32 %gpuslice_p, %gpuslice_r5, %gpuslice_r3, %gpuslice_p;
  @%gpuslice_p mov.u32 %gpuslice_r4, 2;
)";

/// Stores the mean duration of a block-task of the measured chunk, which began at d4, and clears the shared word +16,
/// so that the chunk is measured once. d0: the slot.
constexpr std::string_view kMeasure = R"(
  mov.u64 %gpuslice_d1, %globaltimer;
  sub.u64 %gpuslice_d1, %gpuslice_d1, %gpuslice_d4;
  min.u64 %gpuslice_d1, %gpuslice_d1, 0xffffffff;
  cvt.u32.u64 %gpuslice_r3, %gpuslice_d1;
  ld.shared.u32 %gpuslice_r5, [gpuslice_shared+32];
  div.u32 %gpuslice_r3, %gpuslice_r3, %gpuslice_r5;
  max.u32 %gpuslice_r3, %gpuslice_r3, 1;
  st.volatile.global.u32 [%gpuslice_d0+@TASK_NS], %gpuslice_r3;
  mov.u64 %gpuslice_d4, 0;
  st.shared.u64 [gpuslice_shared+16], %gpuslice_d4;
)";

/// Sets r2 to the address of this turn's word of a pair, without the offset of the pair, and r3 to the address of the
/// shared words.
constexpr std::string_view kTurn = R"(
  selp.b32 %gpuslice_r2, 4, 0, %gpuslice_odd;
  mov.u32 %gpuslice_r3, gpuslice_shared;
  add.u32 %gpuslice_r2, %gpuslice_r2, %gpuslice_r3;
)";

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
// A worker of an agent's grid stores this flag as its shared word +56: it counts as counted out (start_text.h).
static_assert(kAgentGrid == 1);
// kHere uses 252 and 3 to find the word and the byte of an SM.
static_assert(kMaxSms == 256);

}  // namespace

std::string WorkerNames::expand(std::string_view text) const {
  std::string out;
  while (!text.empty()) {
    const std::size_t at = text.find('@');
    out += text.substr(0, at);
    if (at == text.npos) break;
    text.remove_prefix(at);
    std::size_t length = 1;
    while (length < text.size() && ((text[length] >= 'A' && text[length] <= 'Z') || text[length] == '_')) ++length;
    out += length == 1 ? "@" : word(text.substr(1, length - 1));
    text.remove_prefix(length);
  }
  return out;
}

std::string WorkerNames::word(std::string_view name) const {
  struct Row {
    std::string_view name;
    std::size_t offset;
  };
  static constexpr Row kArgs[] = {
      {"SLOT", offsetof(LaunchArgs, slot)},
      {"HOST", offsetof(LaunchArgs, host)},
      {"POLLED", offsetof(LaunchArgs, polled)},
      {"TOTAL", offsetof(LaunchArgs, total)},
      {"GRID_X", offsetof(LaunchArgs, grid_x)},
      {"GRID_Y", offsetof(LaunchArgs, grid_y)},
      {"GRID_Z", offsetof(LaunchArgs, grid_z)},
      {"CHUNK", offsetof(LaunchArgs, chunk)},
      {"TAPER", offsetof(LaunchArgs, taper)},
      {"QUICK_BELOW", offsetof(LaunchArgs, quick_below)},
      {"GIVEN", offsetof(LaunchArgs, given)},
      {"WORKERS", offsetof(LaunchArgs, workers)},
      {"TASKS", offsetof(LaunchArgs, tasks)},
      {"ORDER", offsetof(LaunchArgs, order)},
      {"INDEX_MASK", offsetof(LaunchArgs, index_mask)},
      {"ADVANCE", offsetof(LaunchArgs, advance)},
      {"MINUS_X", offsetof(LaunchArgs, minus_grid_x)},
      {"FLAGS", offsetof(LaunchArgs, flags)},
      {"LIMIT", offsetof(LaunchArgs, limit)},
      {"RANGE", offsetof(LaunchArgs, range)},
      {"FIRST", offsetof(LaunchArgs, first)},
      {"X_MAGIC", offsetof(LaunchArgs, by_grid_x) + offsetof(Divisor, magic)},
      {"X_SHIFT", offsetof(LaunchArgs, by_grid_x) + offsetof(Divisor, shift)},
      {"Y_MAGIC", offsetof(LaunchArgs, by_grid_y) + offsetof(Divisor, magic)},
      {"Y_SHIFT", offsetof(LaunchArgs, by_grid_y) + offsetof(Divisor, shift)},
  };
  static constexpr Row kNumbers[] = {
      {"NEXT", offsetof(DeviceSlot, next)},
      {"LOOKED", offsetof(DeviceSlot, looked)},
      {"CLOSED", kClosed},
      {"NUMBERS", kClosed - 1},
      {"LOOKS_EACH", kLooksEach - 1},
      {"STATE", offsetof(DeviceSlot, polling)},
      {"POLLING", offsetof(DeviceSlot, polling)},
      {"SLOT_RANGE", offsetof(DeviceSlot, range)},
      {"EXTRA", offsetof(DeviceSlot, extra)},
      {"LEFT", offsetof(DeviceSlot, left)},
      {"GONE", offsetof(DeviceSlot, gone)},
      {"HERE_BYTES", offsetof(DeviceSlot, here)},
      {"STARTED", offsetof(HostSlot, started)},
      {"HOST_LEFT", offsetof(HostSlot, left)},
      {"START_NS", offsetof(HostSlot, start_ns)},
      {"DONE_NS", offsetof(HostSlot, done_ns)},
      {"LEFT_NS", offsetof(HostSlot, left_ns)},
      {"POSTED", offsetof(DeviceSlot, posted)},
      {"TASK_NS", offsetof(DeviceSlot, task_ns)},
      {"RESTING", offsetof(HostSlot, resting)},
      {"ALL_SMS", kMaxSms << 16},
      {"LONE", offsetof(HostSlot, lone)},
      {"AGENT_GRID", kAgentGrid},
      {"EAGER", kEager},
      {"POLL_EVERY", kPollEveryNs},
      {"POLL_EAGERLY", kPollEagerlyNs},
      {"POST_EVERY", kPostEveryNs},
  };
  if (name == "OUTSIDE") return std::string(kOutside);
  if (name == "HERE") return std::string(kHere);
  if (name == "TURN") return std::string(kTurn);
  if (name == "THREADS") return std::string(kThreads);
  if (name == "MEASURE") return expand(kMeasure);
  if (name == "SIZE") return expand(kSize);
  if (name == "IN_ORDER") return expand(kInOrder);
  if (name == "COUNT_OUT") return expand(kCountOut);
  for (const Row& row : kArgs) {
    if (row.name == name) return args_ + "+" + std::to_string(row.offset);
  }
  for (const Row& row : kNumbers) {
    if (row.name == name) return std::to_string(row.offset);
  }
  return "@" + std::string(name);
}

}  // namespace gpuctl::ptx::pass
