// Where the worker's shared words stand, for kernels with dynamic shared memory: behind it. In front of it they would
// move it, and programs may count on where it begins beyond the alignment they write down: swizzled layouts (of wgmma
// and bulk tensor copies in hardware, of others in the program's own arithmetic) go wrong where it does not begin at a
// multiple of 1024. Kernels whose static shared memory is full have the words there too.
#pragma once

#include <string>
#include <string_view>

#include "ptx/syntax.h"

namespace gpuctl::ptx::pass {

/// The worker's text with its words behind the launch's dynamic shared memory, which is to be of with_shared_words()
/// bytes. Their address is computed at each access: in a register that lives on it would cost the body one.
std::string put_words_behind(std::string_view worker);

/// Its beginning, which such a text names: a variable of the module.
Item dynamic_shared_variable();

}  // namespace gpuctl::ptx::pass
