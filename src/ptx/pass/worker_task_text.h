// The worker's text (wrap_in_claim_loop.cc) around the program's body: from the barrier to the next claim.
#pragma once

#include <string_view>

namespace gpuctl::ptx::pass {

inline constexpr std::string_view kPlainBarrier = R"(
  bar.sync 0;
)";

/// All threads of the block are here, finished, when the count says so; until then it is a barrier of the live ones.
inline constexpr std::string_view kJoiningBarrier = R"(
$gpuslice_join:
  {
    .param .b32 gpuslice_finished;
    .param .b32 gpuslice_count;
    mov.b32 %gpuslice_r0, 1;
    st.param.b32 [gpuslice_finished], %gpuslice_r0;
    call (gpuslice_count), gpuslice_meet, (gpuslice_finished);
    ld.param.b32 %gpuslice_r1, [gpuslice_count];
  }
  mov.u32 %gpuslice_r0, %ntid.x;
  mov.u32 %gpuslice_r2, %ntid.y;
  mul.lo.u32 %gpuslice_r0, %gpuslice_r0, %gpuslice_r2;
  mov.u32 %gpuslice_r2, %ntid.z;
  mul.lo.u32 %gpuslice_r0, %gpuslice_r0, %gpuslice_r2;
  setp.ne.u32 %gpuslice_p, %gpuslice_r1, %gpuslice_r0;
  @%gpuslice_p bra.uni $gpuslice_join;
$gpuslice_joined:
)";

/// Nobody returned early from the block-task that ends here, if %gpuslice_plain says so.
inline constexpr std::string_view kPlainOrJoin = R"(
  @!%gpuslice_plain bra.uni $gpuslice_join;
  bar.sync 0;
  bra.uni $gpuslice_joined;
)";

inline constexpr std::string_view kReadOdd = R"(
  not.pred %gpuslice_odd, %gpuslice_odd;
  selp.b32 %gpuslice_r2, 8, 0, %gpuslice_odd;
  mov.u32 %gpuslice_r3, gpuslice_shared;
  add.u32 %gpuslice_r2, %gpuslice_r2, %gpuslice_r3;
  ld.shared.u32 %gpuslice_at, [%gpuslice_r2];
  ld.param.u32 %gpuslice_r3, [@TOTAL];
  setp.ge.u32 %gpuslice_p, %gpuslice_at, %gpuslice_r3;
  @%gpuslice_p bra.uni $gpuslice_leave;
)";

inline constexpr std::string_view kReadAt = R"(
  not.b32 %gpuslice_r1, %gpuslice_at;
  and.b32 %gpuslice_r1, %gpuslice_r1, 0x80000000;
  shr.u32 %gpuslice_r2, %gpuslice_r1, 28;
  mov.u32 %gpuslice_r3, gpuslice_shared;
  add.u32 %gpuslice_r2, %gpuslice_r2, %gpuslice_r3;
  ld.shared.u32 %gpuslice_r0, [%gpuslice_r2];
  ld.param.u32 %gpuslice_r3, [@TOTAL];
  setp.ge.u32 %gpuslice_p, %gpuslice_r0, %gpuslice_r3;
  @%gpuslice_p bra.uni $gpuslice_leave;
  or.b32 %gpuslice_at, %gpuslice_r0, %gpuslice_r1;
$gpuslice_task:
)";

/// In a grid of one dimension, the usual case, the number of the block-task is its index.
inline constexpr std::string_view kBlockIndex = R"(
  and.b32 %gpuslice_ctaid_x, %gpuslice_at, 0x7fffffff;
  mov.u32 %gpuslice_ctaid_y, 0;
  mov.u32 %gpuslice_ctaid_z, 0;
  ld.param.u32 %gpuslice_r1, [@GRID_Y];
  ld.param.u32 %gpuslice_r2, [@GRID_Z];
  or.b32 %gpuslice_r2, %gpuslice_r1, %gpuslice_r2;
  setp.eq.u32 %gpuslice_p, %gpuslice_r2, 1;
  @%gpuslice_p bra.uni $gpuslice_body;
  ld.param.u32 %gpuslice_r2, [@GRID_X];
  div.u32 %gpuslice_r3, %gpuslice_ctaid_x, %gpuslice_r2;
  mul.lo.u32 %gpuslice_r2, %gpuslice_r3, %gpuslice_r2;
  sub.u32 %gpuslice_ctaid_x, %gpuslice_ctaid_x, %gpuslice_r2;
  div.u32 %gpuslice_ctaid_z, %gpuslice_r3, %gpuslice_r1;
  mul.lo.u32 %gpuslice_r2, %gpuslice_ctaid_z, %gpuslice_r1;
  sub.u32 %gpuslice_ctaid_y, %gpuslice_r3, %gpuslice_r2;
$gpuslice_body:
)";

inline constexpr std::string_view kGridSize = R"(
  ld.param.u32 %gpuslice_nctaid_x, [@GRID_X];
  ld.param.u32 %gpuslice_nctaid_y, [@GRID_Y];
  ld.param.u32 %gpuslice_nctaid_z, [@GRID_Z];
)";

inline constexpr std::string_view kNotPlain = R"(
  setp.ne.u32 %gpuslice_plain, 0, 0;
)";

inline constexpr std::string_view kPlainTaskEndLabel = R"(
$gpuslice_plain_task_end:
)";

inline constexpr std::string_view kPlain = R"(
  setp.eq.u32 %gpuslice_plain, 0, 0;
)";

inline constexpr std::string_view kToAdvance = R"(
  bra.uni $gpuslice_advance;
)";

/// The next block-task of the chunk, behind a barrier.
inline constexpr std::string_view kMoreOfChunk = R"(
  @%gpuslice_more bra.uni $gpuslice_task;
)";

inline constexpr std::string_view kNoMore = R"(
  setp.ne.u32 %gpuslice_more, 0, 0;
)";

inline constexpr std::string_view kAdvanceLabel = R"(
$gpuslice_advance:
)";

inline constexpr std::string_view kTaskEndLabel = R"(
$gpuslice_task_end:
)";

/// Copies into shared memory that the block-task left in flight must not land in the next one.
inline constexpr std::string_view kFinishCopies = R"(
  cp.async.wait_all;
)";

inline constexpr std::string_view kAdvanceOdd = R"(
  mov.u32 %gpuslice_r9, 0;
  bra $gpuslice_next;
)";

/// p: the chunk has another block-task. r2 its end, r3 the number of the next one.
inline constexpr std::string_view kAdvanceAt = R"(
  shr.u32 %gpuslice_r2, %gpuslice_at, 31;
  shl.b32 %gpuslice_r2, %gpuslice_r2, 3;
  mov.u32 %gpuslice_r3, gpuslice_shared;
  add.u32 %gpuslice_r2, %gpuslice_r2, %gpuslice_r3;
  ld.shared.u32 %gpuslice_r2, [%gpuslice_r2+4];
  add.u32 %gpuslice_at, %gpuslice_at, 1;
  and.b32 %gpuslice_r3, %gpuslice_at, 0x7fffffff;
  setp.lt.u32 %gpuslice_p, %gpuslice_r3, %gpuslice_r2;
)";

inline constexpr std::string_view kRunOn = R"(
  @%gpuslice_p bra.uni $gpuslice_task;
  mov.u32 %gpuslice_r9, 1;
  bra $gpuslice_next;
)";

/// Somebody returned early: the threads join before they go on.
inline constexpr std::string_view kJoinThenRunOn = R"(
  setp.lt.u32 %gpuslice_more, %gpuslice_r3, %gpuslice_r2;
  mov.u32 %gpuslice_r9, 1;
  bra $gpuslice_next;
)";

}  // namespace gpuctl::ptx::pass
