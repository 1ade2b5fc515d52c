// The worker's text (wrap_in_claim_loop.cc) from a claimed chunk to the barrier after which the threads read its
// block-tasks. The shared words: start_text.h.
#pragma once

#include <string_view>

namespace gpuctl::ptx::pass {

/// Turns the r11 numbers from r4 on into block-tasks r4 to r5, and sets r3 to how many there are. Kernels that read
/// their index along one axis take block-tasks one after the other, whatever the order says: in such a grid those are
/// neighbours as well.
inline constexpr std::string_view kTasksInRow = R"(
  add.u32 %gpuslice_r5, %gpuslice_r4, %gpuslice_r11;
  ld.param.u32 %gpuslice_r3, [@TASKS];
  min.u32 %gpuslice_r5, %gpuslice_r5, %gpuslice_r3;
  sub.u32 %gpuslice_r3, %gpuslice_r5, %gpuslice_r4;
  max.s32 %gpuslice_r3, %gpuslice_r3, 1;
)";

inline constexpr std::string_view kTasksInOrder = R"(
  @IN_ORDER
  shl.b32 %gpuslice_r5, %gpuslice_r11, %gpuslice_r8;
  add.u32 %gpuslice_r5, %gpuslice_r4, %gpuslice_r5;
  ld.param.u32 %gpuslice_r3, [@TASKS];
  min.u32 %gpuslice_r5, %gpuslice_r5, %gpuslice_r3;
  sub.u32 %gpuslice_r3, %gpuslice_r5, %gpuslice_r4;
  max.s32 %gpuslice_r3, %gpuslice_r3, 1;
  sub.u32 %gpuslice_r3, %gpuslice_r3, 1;
  shr.u32 %gpuslice_r3, %gpuslice_r3, %gpuslice_r8;
  add.u32 %gpuslice_r3, %gpuslice_r3, 1;
)";

/// Sets r3 to the length of a row or plane, whose end a part of a chunk must not cross. Blocks that differ only in an
/// index component that the kernel never reads are alike. So a kernel that reads only %ctaid.x takes its block-tasks
/// row by row, and finds its index without a division.
inline constexpr std::string_view kPartOfRow = R"(
$gpuslice_part:
  ld.param.u32 %gpuslice_r3, [@GRID_X];
)";

inline constexpr std::string_view kPartOfPlane = R"(
$gpuslice_part:
  ld.param.u32 %gpuslice_r3, [@GRID_X];
  ld.param.u32 %gpuslice_r2, [@GRID_Y];
  mul.lo.u32 %gpuslice_r3, %gpuslice_r3, %gpuslice_r2;
)";

inline constexpr std::string_view kPart = R"(
  st.shared.v2.u32 [gpuslice_shared+8], {%gpuslice_r5, %gpuslice_r5};
  ld.param.u32 %gpuslice_r2, [@TASKS];
  setp.ge.u32 %gpuslice_p, %gpuslice_r3, %gpuslice_r2;
  @%gpuslice_p bra $gpuslice_publish;
  rem.u32 %gpuslice_r2, %gpuslice_r4, %gpuslice_r3;
  sub.u32 %gpuslice_r3, %gpuslice_r3, %gpuslice_r2;
  sub.u32 %gpuslice_r6, %gpuslice_r5, %gpuslice_r4;
  min.u32 %gpuslice_r3, %gpuslice_r3, %gpuslice_r6;
  add.u32 %gpuslice_r4, %gpuslice_r4, %gpuslice_r3;
  st.shared.u32 [gpuslice_shared+8], %gpuslice_r4;
  mov.u32 %gpuslice_r4, %gpuslice_r2;
  add.u32 %gpuslice_r5, %gpuslice_r2, %gpuslice_r3;
)";

inline constexpr std::string_view kWholeChunk = R"(
$gpuslice_part:
)";

/// Sets r5 to the number of block-tasks from r4 to r5.
inline constexpr std::string_view kCountInRow = R"(
$gpuslice_publish:
  sub.u32 %gpuslice_r5, %gpuslice_r5, %gpuslice_r4;
)";

inline constexpr std::string_view kCountInOrder = R"(
$gpuslice_publish:
  ld.param.u32 %gpuslice_r2, [@ORDER];
  and.b32 %gpuslice_r2, %gpuslice_r2, 255;
  sub.u32 %gpuslice_r5, %gpuslice_r5, %gpuslice_r4;
  sub.u32 %gpuslice_r5, %gpuslice_r5, 1;
  shr.u32 %gpuslice_r5, %gpuslice_r5, %gpuslice_r2;
  add.u32 %gpuslice_r5, %gpuslice_r5, 1;
)";

/// Writes the word (index_mask()) of the run of r5 block-tasks from r4 on. At $gpuslice_say, r4 is the word itself: 0
/// to leave, 1 to come back without a block-task. r3: -(mask + 1).
inline constexpr std::string_view kPublish = R"(
$gpuslice_run:
  ld.param.u32 %gpuslice_r3, [@INDEX_MASK];
  not.b32 %gpuslice_r3, %gpuslice_r3;
  mad.lo.u32 %gpuslice_r4, %gpuslice_r5, %gpuslice_r3, %gpuslice_r4;
$gpuslice_say:
  @TURN
  st.shared.u32 [%gpuslice_r2], %gpuslice_r4;
)";

/// Clears the count of the next turn, for kFirstLeads.
inline constexpr std::string_view kCountAnew = R"(
  selp.b32 %gpuslice_r2, 0, 4, %gpuslice_odd;
  add.u32 %gpuslice_r2, %gpuslice_r2, %gpuslice_r3;
  mov.u32 %gpuslice_r4, 0;
  st.shared.u32 [%gpuslice_r2+40], %gpuslice_r4;
)";

inline constexpr std::string_view kWait = R"(
$gpuslice_wait:
)";

}  // namespace gpuctl::ptx::pass
