// What decides how a kernel's worker looks: the conditions of its template (worker.ptx.in).
#pragma once

namespace gpuctl::ptx::pass {

struct WorkerShape {
  bool two_bodies;           ///< there is a plain body (Kernel::plain_body)
  bool joins;                ///< threads may be finished with a block-task while others go on to a barrier
  bool may_join_plainly;     ///< if so: the body notes whether none is (%plain)
  bool meets_in_plain_body;  ///< the threads meet within each block-task of the plain body
  bool meets_inside;         ///< Kernel::meets_inside
  bool meets_between;        ///< the threads meet between two block-tasks
  bool first_leads;          ///< the first warp that finishes a chunk has the next leader
  // Components of the block index that the kernel reads, and whether it reads the grid's size.
  bool one_axis;  ///< neither y nor z
  bool reads_x;
  bool reads_y;
  bool reads_z;
  bool reads_size;
  bool copies;  ///< it may leave asynchronous copies under way
};

}  // namespace gpuctl::ptx::pass
