// The worker's text (wrap_in_claim_loop.cc) around the program's body: from the barrier to the next claim.
#pragma once

#include <string>
#include <string_view>

namespace gpuctl::ptx::pass {

inline constexpr std::string_view kPlainBarrier = R"(
  bar.sync 0;
)";

/// All threads of the block are finished and here when the count equals the number of threads. Until then, this is a
/// barrier of the threads that still run.
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
  @THREADS
  setp.ne.u32 %gpuslice_p, %gpuslice_r1, %gpuslice_r0;
  @%gpuslice_p bra.uni $gpuslice_join;
$gpuslice_joined:
)";

/// If %gpuslice_plain is set, no thread returned early from the block-task that ends here, and a plain barrier is
/// enough.
inline constexpr std::string_view kPlainOrJoin = R"(
  @!%gpuslice_plain bra.uni $gpuslice_join;
  bar.sync 0;
  bra.uni $gpuslice_joined;
)";

inline constexpr std::string_view kRead = R"(
  @TURN
  not.pred %gpuslice_odd, %gpuslice_odd;
  ld.shared.u32 %gpuslice_at, [%gpuslice_r2];
  setp.ge.s32 %gpuslice_p, %gpuslice_at, 0;
  @%gpuslice_p bra.uni $gpuslice_no_task;
)";

inline constexpr std::string_view kTaskLabel = R"(
$gpuslice_task:
)";

/// Between the plain body and the other one. The threads that leave the plain body meet here, not inside it.
inline constexpr std::string_view kCrossingLabel = R"(
$gpuslice_crossing:
)";

inline constexpr std::string_view kOtherTaskLabel = R"(
$gpuslice_other_task:
)";

inline constexpr std::string_view kIndexInRow = R"(
  ld.param.u32 %gpuslice_r1, [@INDEX_MASK];
  and.b32 %gpuslice_ctaid_x, %gpuslice_at, %gpuslice_r1;
)";

inline constexpr std::string_view kMinusX = "  ld.param.u32 %gpuslice_r2, [@MINUS_X];\n";
inline constexpr std::string_view kMinusY =
    "  ld.param.u32 %gpuslice_r2, [@GRID_Y];\n  neg.s32 %gpuslice_r2, %gpuslice_r2;\n";

/// Divides `index` by the grid's size along `axis`, X or Y, with a multiplication. `minus` loads that size, negated,
/// into r2. `rest` may be the same register as `index`.
inline std::string divide_index(std::string_view index, char axis, std::string_view minus, std::string_view quotient,
                                std::string_view rest) {
  std::string text;
  const auto line = [&](auto... parts) { ((text += parts), ...) += '\n'; };
  line("  shl.b32 %gpuslice_r1, ", index, ", 1;");
  line("  ld.param.u32 %gpuslice_r2, [@", axis, "_MAGIC];");
  line("  mul.hi.u32 %gpuslice_r1, %gpuslice_r1, %gpuslice_r2;");
  line("  ld.param.u32 %gpuslice_r2, [@", axis, "_SHIFT];");
  line("  shr.u32 ", quotient, ", %gpuslice_r1, %gpuslice_r2;");
  text += minus;
  line("  mad.lo.u32 ", rest, ", ", quotient, ", %gpuslice_r2, ", index, ";");
  return text;
}

inline std::string index_in_plane() {
  return "  ld.param.u32 %gpuslice_r3, [@INDEX_MASK];\n"
         "  and.b32 %gpuslice_r3, %gpuslice_at, %gpuslice_r3;\n" +
         divide_index("%gpuslice_r3", 'X', kMinusX, "%gpuslice_ctaid_y", "%gpuslice_ctaid_x");
}

/// Divides a second time: the y of index_in_plane() counts through all planes.
inline std::string index_in_space() {
  return index_in_plane() + divide_index("%gpuslice_ctaid_y", 'Y', kMinusY, "%gpuslice_ctaid_z", "%gpuslice_ctaid_y");
}

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

inline constexpr std::string_view kTaskEndLabel = R"(
$gpuslice_task_end:
)";

/// Waits for the block-task's asynchronous copies into shared memory, which must not arrive during the next block-task.
inline constexpr std::string_view kFinishCopies = R"(
  cp.async.wait_all;
)";

/// Waits for bulk copies, into shared and into global memory. They belong to the block-task, and must be visible to
/// all that see it counted as complete.
inline constexpr std::string_view kFinishBulkCopies = R"(
  cp.async.bulk.commit_group;
  cp.async.bulk.wait_group 0;
  fence.proxy.async;
)";

/// A thread of a guarded kernel ends here. The last thread of the block leaves for all; the writes of the others
/// happened before their additions to the count.
inline constexpr std::string_view kEndOnce = R"(
  @THREADS
  mov.u32 %gpuslice_r1, 1;
  atom.acq_rel.cta.shared.add.u32 %gpuslice_r1, [gpuslice_shared+40], %gpuslice_r1;
  add.u32 %gpuslice_r1, %gpuslice_r1, 1;
  setp.ne.u32 %gpuslice_others, %gpuslice_r1, %gpuslice_r0;
  @%gpuslice_others bra $gpuslice_return;
  ld.shared.u64 %gpuslice_d4, [gpuslice_shared+16];
  setp.eq.u64 %gpuslice_p, %gpuslice_d4, 0;
  @%gpuslice_p bra $gpuslice_leave;
  ld.param.u64 %gpuslice_d0, [@SLOT];
  @MEASURE
  bra $gpuslice_leave;
)";

inline constexpr std::string_view kAdvance = R"(
  ld.param.u32 %gpuslice_r2, [@INDEX_MASK];
  add.u32 %gpuslice_at, %gpuslice_at, %gpuslice_r2;
  add.u32 %gpuslice_at, %gpuslice_at, 2;
)";

inline constexpr std::string_view kAdvanceInOrder = R"(
  ld.param.u32 %gpuslice_r2, [@ADVANCE];
  add.u32 %gpuslice_at, %gpuslice_at, %gpuslice_r2;
)";

inline constexpr std::string_view kRunOn = R"(
  setp.lt.s32 %gpuslice_p, %gpuslice_at, 0;
  @%gpuslice_p bra.uni $gpuslice_task;
)";

inline constexpr std::string_view kMeetAndRunOn = R"(
  setp.lt.s32 %gpuslice_p, %gpuslice_at, 0;
  @!%gpuslice_p bra.uni $gpuslice_last;
  bar.sync 0;
  bra.uni $gpuslice_task;
$gpuslice_last:
)";

inline constexpr std::string_view kRunOnOther = R"(
  setp.lt.s32 %gpuslice_p, %gpuslice_at, 0;
  @%gpuslice_p bra.uni $gpuslice_other_task;
)";

/// There is no block-task: leaves if the word is 0, else goes back to kNext.
inline constexpr std::string_view kNoTask = R"(
$gpuslice_no_task:
  setp.ne.u32 %gpuslice_p, %gpuslice_at, 0;
  mov.u32 %gpuslice_r9, 0;
  @%gpuslice_p bra.uni $gpuslice_next;
)";

inline constexpr std::string_view kToNext = R"(
  mov.u32 %gpuslice_r9, 0;
  bra $gpuslice_next;
)";

/// The first lane of the first warp that finishes the chunk is the leader from here on. It claims while the other warps
/// are still at work.
inline constexpr std::string_view kFirstLeads = R"(
  mov.u32 %gpuslice_r0, %laneid;
  setp.ne.u32 %gpuslice_others, %gpuslice_r0, 0;
  @TURN
  mov.u32 %gpuslice_r1, 1;
  @!%gpuslice_others atom.shared.add.u32 %gpuslice_r1, [%gpuslice_r2+40], %gpuslice_r1;
  @!%gpuslice_others setp.ne.u32 %gpuslice_others, %gpuslice_r1, 0;
)";

}  // namespace gpuctl::ptx::pass
