// The worker's text (wrap_in_claim_loop.cc) for a quick claim, one that needs no further decision. Nearly all claims
// are quick, and this text has a third of the instructions of kClaim. The shared words: start_text.h.
#pragma once

#include <string_view>

namespace gpuctl::ptx::pass {

/// Sets r4 to the begin of the chunk and r11 to its size, as kClaim does.
inline constexpr std::string_view kQuickClaim = R"(
  ld.shared.v2.u32 {%gpuslice_r11, %gpuslice_r12}, [gpuslice_shared+48];
  setp.eq.u32 %gpuslice_p, %gpuslice_r11, 0;
  @%gpuslice_p bra $gpuslice_claim;
  ld.param.u64 %gpuslice_d0, [@SLOT];
  atom.global.add.u32 %gpuslice_r6, [%gpuslice_d0+@NEXT], %gpuslice_r11;
  ld.volatile.global.v2.u32 {%gpuslice_r7, %gpuslice_r8}, [%gpuslice_d0+@STATE];
  mov.u32 %gpuslice_r3, %globaltimer_lo;
  ld.param.u32 %gpuslice_r4, [@GIVEN];
  add.u32 %gpuslice_r4, %gpuslice_r4, %gpuslice_r6;
  sub.u32 %gpuslice_r5, %gpuslice_r3, %gpuslice_r7;
  setp.gt.u32 %gpuslice_p, %gpuslice_r5, @POLL_EAGERLY;
  setp.ne.or.u32 %gpuslice_p, %gpuslice_r8, %gpuslice_r12, %gpuslice_p;
  ld.param.u32 %gpuslice_r5, [@QUICK_BELOW];
  setp.ge.or.u32 %gpuslice_p, %gpuslice_r4, %gpuslice_r5, %gpuslice_p;
  @%gpuslice_p bra $gpuslice_unusual;
)";

/// Goes on to kQuickRun if the grid is one row, or, for kQuickPlane, one plane; else to kPart.
inline constexpr std::string_view kQuickRow = R"(
  add.u32 %gpuslice_r5, %gpuslice_r4, %gpuslice_r11;
  ld.param.u32 %gpuslice_r3, [@GRID_X];
  ld.param.u32 %gpuslice_r2, [@TASKS];
  setp.lt.u32 %gpuslice_p, %gpuslice_r3, %gpuslice_r2;
  @%gpuslice_p bra $gpuslice_part;
)";

inline constexpr std::string_view kQuickPlane = R"(
  @IN_ORDER
  add.u32 %gpuslice_r5, %gpuslice_r4, %gpuslice_r11;
  ld.param.u32 %gpuslice_r2, [@GRID_Z];
  setp.gt.u32 %gpuslice_p, %gpuslice_r2, 1;
  @%gpuslice_p bra $gpuslice_part;
)";

inline constexpr std::string_view kQuickRun = R"(
  mov.u32 %gpuslice_r5, %gpuslice_r11;
  bra $gpuslice_run;
$gpuslice_unusual:
  ld.param.u32 %gpuslice_r10, [@TOTAL];
  mov.u32 %gpuslice_r9, 0;
  setp.eq.u32 %gpuslice_eager, 0, 0;
  bra $gpuslice_asked;
)";

}  // namespace gpuctl::ptx::pass
