// Calls: arguments move between frames, each lane has its own stack of call records.
#include <algorithm>
#include <cstring>
#include <sstream>

#include "softgpu/engine/block.h"

namespace gpuctl::softgpu::engine {
namespace {

/// Limit of the registers of all frames of one warp, in bytes: far more than a program without endless recursion needs.
constexpr std::size_t kMaxRegisterBytes = 64u << 20;

std::string position(const Dim3& at) {
  std::ostringstream text;
  text << '[' << at.x << ',' << at.y << ',' << at.z << ']';
  return text.str();
}

}  // namespace

/// The arguments of a lane for __assertfail.
Block::Assertion Block::assertion_of(Warp& warp, const CallSite& site, int lane) {
  std::uint64_t value[4] = {};  // message, file, line, function
  for (std::size_t k = 0; k < std::min<std::size_t>(4, site.arguments.size()); ++k) {
    std::memcpy(&value[k], place(warp, lane, site.arguments[k], warp.frame[lane], warp.local_frame[lane]),
                std::min<std::size_t>(8, site.arguments[k].size));
  }
  const auto text = [](std::uint64_t address) { return address != 0 ? reinterpret_cast<const char*>(address) : "?"; };
  std::ostringstream where;
  where << text(value[1]) << ':' << static_cast<std::uint32_t>(value[2]) << ": " << text(value[3]);
  return {where.str(), text(value[0])};
}

std::byte* Block::place(Warp& warp, int lane, const Place& place, std::uint32_t frame, std::uint32_t local_frame) {
  if (!place.in_register)
    return warp.local + static_cast<std::size_t>(lane) * ctx_.local_bytes + local_frame + place.offset;
  if (place.size == 8) return reinterpret_cast<std::byte*>(at<std::uint64_t>(warp, place.reg, frame) + lane);
  return reinterpret_cast<std::byte*>(at<std::uint32_t>(warp, place.reg, frame) + lane);
}

void Block::copy(Warp& warp, int lane, const Place& to, std::uint32_t to_frame, std::uint32_t to_local,
                 const Place& from, std::uint32_t from_frame, std::uint32_t from_local) {
  if (to.in_register && to.size == 0) {  // predicates are passed as predicates
    if (!from.in_register || from.size != 0) return;
    Mask& p = *at<Mask>(warp, to.reg, to_frame);
    const Mask bit = Mask{1} << lane;
    p = (p & ~bit) | (*at<Mask>(warp, from.reg, from_frame) & bit);
    return;
  }
  if (from.in_register && from.size == 0) return;
  std::byte* target = place(warp, lane, to, to_frame, to_local);
  if (to.in_register) std::memset(target, 0, to.size == 8 ? 8 : 4);
  std::memcpy(target, place(warp, lane, from, from_frame, from_local), std::min(to.size, from.size));
}

void Block::call(Warp& warp, const Instruction& in, const Group& group, Mask active) {
  const CallSite& site = program_.call_sites[in.target];
  if (site.builtin != kNotBuiltin) {
    call_builtin(warp, in, site, active);
    return set_pc(warp, active, group.pc + 1);
  }
  const Function* callee = site.callee;
  if (callee == nullptr) {
    // Lanes with the same target go together. The others stay at the call and execute it later.
    const auto* pointer = at<std::uint64_t>(site.pointer);
    const std::uint64_t target = pointer[__builtin_ctz(active)];
    const auto known = std::find_if(program_.functions.begin(), program_.functions.end(), [&](const auto& function) {
      return reinterpret_cast<std::uint64_t>(function.get()) == target;
    });
    if (known == program_.functions.end())
      throw Fault{FaultKind::kInvalidPc, in.line, "call of an address that is no function"};
    callee = known->get();
    if (!callee->defined || callee->entry)
      throw Fault{FaultKind::kInvalidPc, in.line, "call of " + callee->name + ", which cannot be called"};
    Mask same = 0;
    for_lanes(active, [&](int i) { same |= Mask(pointer[i] == target) << i; });
    set_pc(warp, active & ~same, group.pc);
    active = same;
  }
  if (!callee->error.empty())
    throw Fault{FaultKind::kIllegalInstruction, in.line, "call of " + callee->name + ": " + callee->error};
  if (callee->parameters.size() != site.arguments.size() || callee->results.size() < site.results.size())
    throw Fault{FaultKind::kInvalidPc, in.line, "call of " + callee->name + " with other parameters than it has"};
  call_function(warp, in, *callee, active, group.pc);
}

/// The place for a frame of `callee` for the lanes of `mask`, at `frame` or above. Other lanes of the warp are in calls
/// of their own. Frames of two functions must not overlap even for different lanes: each function lays out its
/// registers separately, so bytes of one lane in one frame are bytes of another lane in the other.
std::uint32_t Block::free_frame(const Warp& warp, const Function& callee, std::uint32_t frame, Mask mask) const {
  const Mask others = warp.live & ~mask;
  bool moved = others != 0;
  while (moved) {
    moved = false;
    const auto avoid = [&](std::uint32_t start, const Function& function) {
      if (start == frame && &function == &callee) return;  // the same layout
      const std::uint32_t end = start + function.register_bytes;
      if (frame >= end || start >= frame + callee.register_bytes) return;
      frame = end;
      moved = true;
    };
    for_lanes(others, [&](int i) {
      avoid(warp.frame[i], *warp.function[i]);
      for (const CallRecord& record : warp.calls[i]) avoid(record.frame, *record.function);
    });
  }
  return frame;
}

void Block::call_function(Warp& warp, const Instruction& in, const Function& callee, Mask mask, std::uint32_t pc) {
  const CallSite& site = program_.call_sites[in.target];
  const int first = __builtin_ctz(mask);
  const Function& caller = *warp.function[first];
  const std::uint32_t frame = free_frame(warp, callee, warp.frame[first] + caller.register_bytes, mask);
  if (frame + std::size_t{callee.register_bytes} > kMaxRegisterBytes)
    throw Fault{FaultKind::kStackOverflow, in.line, "stack overflow"};
  warp.registers.reserve(frame + std::size_t{callee.register_bytes});
  for_lanes(mask, [&](int i) {
    const std::uint32_t local = warp.local_frame[i] + caller.local_bytes;
    if (local + std::size_t{callee.local_bytes} > ctx_.local_bytes)
      throw Fault{FaultKind::kStackOverflow, in.line, "stack overflow"};
    for (std::size_t k = 0; k < site.arguments.size(); ++k)
      copy(warp, i, callee.parameters[k], frame, local, site.arguments[k], warp.frame[i], warp.local_frame[i]);
    warp.calls[i].push_back({pc + 1, in.target, warp.frame[i], warp.local_frame[i], &caller});
    warp.frame[i] = frame;
    warp.local_frame[i] = local;
    warp.function[i] = &callee;
    warp.pc[i] = callee.first;
  });
}

void Block::return_from(Warp& warp, const Instruction&, Mask mask) {
  for_lanes(mask, [&](int i) {
    const CallRecord record = warp.calls[i].back();
    warp.calls[i].pop_back();
    const CallSite& site = program_.call_sites[record.site];
    const Function& callee = *warp.function[i];
    for (std::size_t k = 0; k < site.results.size(); ++k)
      copy(warp, i, site.results[k], record.frame, record.local_frame, callee.results[k], warp.frame[i],
           warp.local_frame[i]);
    warp.frame[i] = record.frame;
    warp.local_frame[i] = record.local_frame;
    warp.function[i] = record.function;
    warp.pc[i] = record.return_pc;
  });
}

/// Reports the assertion of each lane, in the words of NVIDIA's driver, and faults.
void Block::fail_assertion(Warp& warp, const Instruction& in, const CallSite& site, Mask mask) {
  std::string first;
  for_lanes(mask, [&](int lane) {
    const Assertion failed = assertion_of(warp, site, lane);
    if (first.empty()) first = failed.where + ": `" + failed.expression + "`";
    if (launch_.print == nullptr) return;
    const auto special = [&](Special which) {
      return reinterpret_cast<const std::uint32_t*>(warp.special.data() + which * kSlot32)[lane];
    };
    const Dim3 thread{special(kTidX), special(kTidY), special(kTidZ)};
    launch_.print->assertion_failed(failed.where + ": block: " + position(launch_.ctaid) + ", thread: " +
                                    position(thread) + " Assertion `" + failed.expression + "` failed.\n");
  });
  throw Fault{FaultKind::kAssertion, in.line, "assertion failed: " + first};
}

void Block::call_builtin(Warp& warp, const Instruction& in, const CallSite& site, Mask mask) {
  if (site.builtin == kAssertFail) fail_assertion(warp, in, site, mask);
  for_lanes(mask, [&](int i) {
    const auto argument = [&](std::size_t k) {
      std::uint64_t value = 0;
      if (k < site.arguments.size())
        std::memcpy(&value, place(warp, i, site.arguments[k], warp.frame[i], warp.local_frame[i]),
                    std::min<std::size_t>(8, site.arguments[k].size));
      return value;
    };
    const char* format = reinterpret_cast<const char*>(argument(0));
    if (format == nullptr) throw Fault{FaultKind::kIllegalAddress, in.line, "printf without a format"};
    const std::string text = format_print(format, reinterpret_cast<const std::byte*>(argument(1)));
    if (launch_.print != nullptr) launch_.print->print(text);
    if (!site.results.empty()) {
      const std::int32_t printed = static_cast<std::int32_t>(text.size());
      std::memcpy(place(warp, i, site.results[0], warp.frame[i], warp.local_frame[i]), &printed, 4);
    }
  });
}

}  // namespace gpuctl::softgpu::engine
