#include "libgpuslice/modules/image_load.h"

namespace gpuslice {

/// A driver may refuse machine code other than its own linker's. There the forms also stand for an image that has no
/// PTX of its own, such as a cubin.
void plan_load(ImageLoad& load) {
  if (!load.forms || load.forms->code.empty())
    load.plan = LoadPlan::kOriginal;
  else if (!load.forms->stands_alone)
    load.plan = LoadPlan::kInPlace;
  else
    load.plan = load.own_code_alone ? LoadPlan::kBesideOrInPlace : LoadPlan::kBeside;
}

}  // namespace gpuslice
