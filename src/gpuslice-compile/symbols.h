// Functions of a library that is opened while the program runs.
#pragma once

#include <dlfcn.h>

#include <type_traits>

namespace gpuctl::compile {

/// Finds the function of that name. False: the library has none.
template <class Function>
bool find_symbol(void* library, Function& function, const char* name) {
  function = reinterpret_cast<std::remove_reference_t<Function>>(dlsym(library, name));
  return function != nullptr;
}

}  // namespace gpuctl::compile
