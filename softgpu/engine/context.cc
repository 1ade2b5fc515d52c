#include "softgpu/engine/context.h"

#include <time.h>

#include <cstdio>

#include "softgpu/engine/engine.h"
#include "softgpu/engine/fault.h"

namespace gpuctl::softgpu::engine {
namespace {

std::string hex(std::uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

int range_of(const RangeCache& ranges, std::uint64_t address, unsigned bytes) {
  for (int k = 0; k < ranges.used; ++k)
    if (address >= ranges.begin[k] && ranges.size[k] >= bytes && address - ranges.begin[k] <= ranges.size[k] - bytes)
      return k;
  return -1;
}

}  // namespace

void check_addresses(Context& ctx, const Instruction& in, Mask mask, unsigned bytes) {
  RangeCache& ranges = ctx.ranges;
  for (; mask != 0; mask &= mask - 1) {
    const int i = __builtin_ctz(mask);
    const std::uint64_t address = ctx.address[i];
    if ((address & (bytes - 1)) != 0)
      throw Fault{FaultKind::kMisalignedAddress, in.line,
                  "misaligned address " + hex(address) + " for " + std::to_string(bytes) + " bytes"};
    if (address < kNullPage) throw Fault{FaultKind::kIllegalAddress, in.line, "null address " + hex(address)};
    int range = range_of(ranges, address, bytes);
    if (range < 0 && ctx.memory != nullptr) {
      const MemoryMap::Range found = ctx.memory->find(address);
      if (found.end > found.begin && address >= found.begin && address < found.end && bytes <= found.end - address) {
        range = ranges.used < RangeCache::kEntries
                    ? ranges.used++
                    : RangeCache::kFixed + ranges.next++ % (RangeCache::kEntries - RangeCache::kFixed);
        ranges.begin[range] = found.begin;
        ranges.size[range] = found.end - found.begin;
      }
    }
    if (range < 0)
      throw Fault{FaultKind::kIllegalAddress, in.line,
                  "invalid address " + hex(address) + " for " + std::to_string(bytes) + " bytes"};
    ranges.hint[RangeCache::slot_of(in)] = static_cast<std::uint8_t>(range);
  }
}

void check_window(Context& ctx, const Instruction& in, Mask mask, unsigned bytes, std::uint64_t begin,
                  std::uint64_t stride, std::uint64_t size) {
  for (; mask != 0; mask &= mask - 1) {
    const int i = __builtin_ctz(mask);
    const std::uint64_t offset = ctx.address[i] - begin - stride * static_cast<std::uint64_t>(i);
    const char* space = in.space == Space::kShared ? "shared" : "local";
    if ((offset & (bytes - 1)) != 0)
      throw Fault{
          FaultKind::kMisalignedAddress, in.line,
          std::string("misaligned ") + space + " address " + hex(offset) + " for " + std::to_string(bytes) + " bytes"};
    if (offset + bytes > size)
      throw Fault{FaultKind::kIllegalAddress, in.line,
                  std::string(space) + " address " + hex(offset) + " is outside of " + std::to_string(size) + " bytes"};
  }
}

std::uint64_t clock_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1000000000u + static_cast<std::uint64_t>(now.tv_nsec);
}

}  // namespace gpuctl::softgpu::engine
