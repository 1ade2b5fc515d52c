// cuGetProcAddress: every entry point of this driver, by name and version.
//
// A name may have several rows: the caller gets the newest one that is not newer than the requested version. The types
// of cudaTypedefs.h ensure that each row's function has the signature of that version of the name.
#include <cuda.h>
#include <cudaProfilerTypedefs.h>
#include <cudaTypedefs.h>

#include <cstring>

#include "softgpu/api/older.h"
#include "softgpu/api/per_thread.h"

extern "C" {
CUresult CUDAAPI cuProfilerStart(void);
CUresult CUDAAPI cuProfilerStop(void);
}

namespace {

struct EntryPoint {
  const char* name;      ///< as callers request it, without version suffix
  const char* exported;  ///< the symbol of this library
  int version;           ///< the CUDA version since which the name means this function
  bool per_thread;       ///< the variant for CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM
  void* function;
};

// The macros of cuda.h rename some names; arguments of # and ## are not expanded, so `name` stays as it is written.
// clang-format off
#define ROW(name, version, function) \
  {#name, #function, version, false, reinterpret_cast<void*>(static_cast<PFN_##name##_v##version>(function))}
#define ROW_PER_THREAD(name, version, suffix, function) \
  {#name, #function, version, true, reinterpret_cast<void*>(static_cast<PFN_##name##_v##version##suffix>(function))}
// clang-format on

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // programs still request deprecated functions
const EntryPoint kEntryPoints[] = {
#include "softgpu/api/entry_points.inc"
};
#pragma GCC diagnostic pop
#undef ROW
#undef ROW_PER_THREAD

struct Answer {
  void* function = nullptr;
  CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
};

Answer find(const char* symbol, int version, bool per_thread) {
  const EntryPoint* best = nullptr;
  Answer answer;
  for (const EntryPoint& entry : kEntryPoints) {
    if (std::strcmp(entry.exported, symbol) == 0 && std::strcmp(entry.name, symbol) != 0) {
      return {entry.function, CU_GET_PROC_ADDRESS_SUCCESS};  // requested by its full name
    }
    if (std::strcmp(entry.name, symbol) != 0) continue;
    if (entry.version > version) {
      if (best == nullptr) answer.status = CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
      continue;
    }
    // A per-thread variant is preferred if requested, and never given otherwise.
    if (entry.per_thread && !per_thread) continue;
    if (best == nullptr || entry.per_thread > best->per_thread ||
        (entry.per_thread == best->per_thread && entry.version > best->version)) {
      best = &entry;
    }
  }
  if (best != nullptr) answer = {best->function, CU_GET_PROC_ADDRESS_SUCCESS};
  return answer;
}

}  // namespace

extern "C" {

CUresult CUDAAPI cuProfilerStart(void) {
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuProfilerStop(void) {
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGetProcAddress_v2(const char* symbol, void** function, int version, cuuint64_t flags,
                                     CUdriverProcAddressQueryResult* status) {
  if (symbol == nullptr || function == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Answer answer = find(symbol, version, (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0);
  *function = answer.function;
  if (status != nullptr) *status = answer.status;
  return answer.function != nullptr ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult CUDAAPI cuGetProcAddress(const char* symbol, void** function, int version, cuuint64_t flags) {
  return cuGetProcAddress_v2(symbol, function, version, flags, nullptr);
}

}  // extern "C"
