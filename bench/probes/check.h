// Shared by some of the probes beside it.
#pragma once

#include <cstdio>
#include <cstdlib>

/// Ends the program if a call of the driver or of the CUDA runtime is refused.
#define CHECK(call)                                                     \
  do {                                                                  \
    if (int result = static_cast<int>(call)) {                          \
      std::printf("%s: error %d (line %d)\n", #call, result, __LINE__); \
      std::exit(1);                                                     \
    }                                                                   \
  } while (0)
