// Tree to PTX text.
#pragma once

#include <string>

#include "ptx/syntax/syntax.h"

namespace gpuctl::ptx {

/// The text of a module; parsing it gives the same tokens the module was parsed from.
std::string print(const Module& module);

/// `%r1`, `[%rd1+4]`, `{%f1, %f2}`: one operand.
std::string print(const Operand& operand);

}  // namespace gpuctl::ptx
