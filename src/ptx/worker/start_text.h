// The worker's text (wrap_in_claim_loop.cc) in front of the loop.
//
// Shared words, by offset in bytes:
//   +0 and +4: the run of block-tasks to take next, in alternate turns (kPublish)
//   +8 and +12: begin and end of what the leader has still to publish of its chunk
//   +16 (64 bits): the leader's state (below)
//   +24: all numbers below this one are claimed, as far as the leader knows
//   +28: whether the leader looks before it claims: 0 no, 1 for now, 2 always
//   +32: block-tasks in the leader's chunk
//   +36: the SM on which the worker started
//   +40 and +44: how many warps have finished what was published, in alternate turns (kFirstLeads). In a guarded
//       kernel, +40 counts the threads that have finished their block-task (kEndOnce).
//   +48: the size of the next claim if that may be a quick one, else 0
//   +52: the range in DeviceSlot, as the leader last saw it
//   +56: whether the worker is counted in `gone`: 0 no; 1 yes, or the grid is an agent's; 2 yes, and it is the holder
//
// The leader's state: the time when a chunk to be measured began; 0 nothing to note; 1 the worker leaves because of its
// SM; 2 it rests.
#pragma once

#include <string_view>

namespace gpuctl::ptx::pass {

inline constexpr std::string_view kDeclarations = R"(
  .reg .pred %gpuslice_p, %gpuslice_q, %gpuslice_others, %gpuslice_odd, %gpuslice_plain, %gpuslice_someone, %gpuslice_eager;
  .reg .pred %gpuslice_closed;
  .reg .b32 %gpuslice_at;
  .reg .b32 %gpuslice_ctaid_x, %gpuslice_ctaid_y, %gpuslice_ctaid_z;
  .reg .b32 %gpuslice_nctaid_x, %gpuslice_nctaid_y, %gpuslice_nctaid_z;
  .reg .b32 %gpuslice_r<16>;
  .reg .b64 %gpuslice_d<5>;
  .shared .align 16 .b8 gpuslice_shared[64];
)";

inline constexpr std::string_view kStart = R"(
  setp.ne.u32 %gpuslice_odd, 0, 0;
)";

/// Comes before kNext. A worker of a guarded kernel may start long after its launch, so it does not make its first
/// claim without looking.
inline constexpr std::string_view kLookFirst = R"(
  mov.u32 %gpuslice_r9, 0;
)";

/// The leader announces its worker. Sets r9 to what the worker does first, as kNext says.
inline constexpr std::string_view kPrologue = R"(
  mov.u32 %gpuslice_r0, %tid.x;
  mov.u32 %gpuslice_r1, %tid.y;
  mov.u32 %gpuslice_r2, %tid.z;
  or.b32 %gpuslice_r0, %gpuslice_r0, %gpuslice_r1;
  or.b32 %gpuslice_r0, %gpuslice_r0, %gpuslice_r2;
  setp.ne.u32 %gpuslice_others, %gpuslice_r0, 0;
  @%gpuslice_others bra $gpuslice_next;
  mov.u64 %gpuslice_d4, 0;
  st.shared.u64 [gpuslice_shared+16], %gpuslice_d4;
  st.shared.u64 [gpuslice_shared+8], %gpuslice_d4;
  st.shared.u64 [gpuslice_shared+40], %gpuslice_d4;
  st.shared.u64 [gpuslice_shared+48], %gpuslice_d4;
  ld.param.u64 %gpuslice_d0, [@SLOT];
  mov.u32 %gpuslice_r1, %smid;
  @HERE
  red.global.add.u32 [%gpuslice_d1+@HERE_BYTES], %gpuslice_r2;
  st.shared.u32 [gpuslice_shared+36], %gpuslice_r1;
  ld.param.u32 %gpuslice_r4, [@GIVEN];
  st.shared.u32 [gpuslice_shared+24], %gpuslice_r4;
  mov.u32 %gpuslice_r2, %ctaid.x;
  and.b32 %gpuslice_r2, %gpuslice_r2, @LOOKS_EACH;
  setp.eq.u32 %gpuslice_p, %gpuslice_r2, 0;
  ld.param.u32 %gpuslice_r0, [@FLAGS];
  and.b32 %gpuslice_r2, %gpuslice_r0, @EAGER;
  setp.eq.or.u32 %gpuslice_q, %gpuslice_r2, 0, %gpuslice_p;
  selp.b32 %gpuslice_r2, 2, 1, %gpuslice_q;
  st.shared.u32 [gpuslice_shared+28], %gpuslice_r2;
  mov.u32 %gpuslice_r2, 1;
  and.b32 %gpuslice_r0, %gpuslice_r0, @AGENT_GRID;
  st.shared.u32 [gpuslice_shared+56], %gpuslice_r0;
  setp.eq.u32 %gpuslice_p, %gpuslice_r0, 0;
  @%gpuslice_p bra $gpuslice_in_stream;
  red.global.add.u32 [%gpuslice_d0+@EXTRA], %gpuslice_r2;
  fence.acq_rel.gpu;  // the holder counts on it for whatever this worker claims
  mov.u32 %gpuslice_r9, 0;
  bra $gpuslice_next;
$gpuslice_in_stream:
  mov.u32 %gpuslice_r0, %ctaid.x;
  setp.ne.u32 %gpuslice_p, %gpuslice_r0, 0;
  @%gpuslice_p bra $gpuslice_announced;
  ld.param.u64 %gpuslice_d1, [@HOST];
  mov.u64 %gpuslice_d2, %globaltimer;
  st.volatile.global.u64 [%gpuslice_d1+@START_NS], %gpuslice_d2;
  st.volatile.global.u32 [%gpuslice_d1+@STARTED], %gpuslice_r2;
$gpuslice_announced:
  ld.param.u32 %gpuslice_r8, [@RANGE];
  @OUTSIDE
  or.pred %gpuslice_q, %gpuslice_q, %gpuslice_p;
  mov.u32 %gpuslice_r2, 0;
  @!%gpuslice_q st.shared.u32 [gpuslice_shared+28], %gpuslice_r2;
  ld.param.u32 %gpuslice_r4, [@GIVEN];
  ld.param.u32 %gpuslice_r5, [@QUICK_BELOW];
  setp.ge.or.u32 %gpuslice_q, %gpuslice_r4, %gpuslice_r5, %gpuslice_q;
  ld.param.u32 %gpuslice_r3, [@CHUNK];
  and.b32 %gpuslice_r3, %gpuslice_r3, 0xffff;
  selp.b32 %gpuslice_r3, 0, %gpuslice_r3, %gpuslice_q;
  st.shared.u32 [gpuslice_shared+48], %gpuslice_r3;
  ld.param.u32 %gpuslice_r5, [@FIRST];
  setp.eq.and.u32 %gpuslice_p, %gpuslice_r5, 0, %gpuslice_p;
  selp.b32 %gpuslice_r9, 0, 1, %gpuslice_p;
)";

}  // namespace gpuctl::ptx::pass
