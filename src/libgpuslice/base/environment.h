// The environment of the program. All of the library reads it here.
#pragma once

#include <stdlib.h>
#include <sys/auxv.h>

namespace gpuslice {

/// Whether the program has rights that its caller lacks: set-uid, set-gid, or capabilities of its file. What the caller
/// chose must not count there, and no file that the caller names is opened.
inline bool has_more_rights_than_caller() {
  return getauxval(AT_SECURE) != 0;
}

/// The value of a variable. Null: it is not set, or has_more_rights_than_caller(). Any thread, like getenv.
inline const char* environment(const char* name) {
  return secure_getenv(name);
}

}  // namespace gpuslice
