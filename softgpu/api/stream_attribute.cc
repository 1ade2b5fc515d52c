// cuStreamSetAttribute, cuStreamGetAttribute, cuStreamCopyAttributes.
#include <cuda.h>

#include "softgpu/driver/driver.h"

using namespace gpuctl::softgpu;

namespace {

/// Whether cuda.h has that attribute for streams and the attribute only tunes speed.
bool is_hint(CUstreamAttrID id) {
  switch (id) {
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
    case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
    case CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING:
      return true;
    default:
      return false;
  }
}

/// The value of a hint before the program sets it.
CUstreamAttrValue default_of(CUstreamAttrID id) {
  CUstreamAttrValue value{};
  if (id == CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY) value.syncPolicy = CU_SYNC_POLICY_AUTO;
  if (id == CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP) value.memSyncDomainMap = {0, 1};
  return value;
}

}  // namespace

extern "C" {

CUresult CUDAAPI cuStreamSetAttribute(CUstream handle, CUstreamAttrID attribute, const CUstreamAttrValue* value) {
  return with_stream(handle, [&](Driver&, const std::shared_ptr<Stream>& stream) {
    if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (attribute == CU_LAUNCH_ATTRIBUTE_PRIORITY) {
      stream->set_priority(value->priority);  // the legacy default stream accepts one too (seen on an H100)
      return CUDA_SUCCESS;
    }
    if (!is_hint(attribute)) return CUDA_ERROR_INVALID_VALUE;
    stream->set_hint(attribute, *value);
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuStreamGetAttribute(CUstream handle, CUstreamAttrID attribute, CUstreamAttrValue* value) {
  return with_stream(handle, [&](Driver&, const std::shared_ptr<Stream>& stream) {
    if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (attribute == CU_LAUNCH_ATTRIBUTE_PRIORITY) {
      *value = {};
      value->priority = stream->priority();
      return CUDA_SUCCESS;
    }
    if (!is_hint(attribute)) return CUDA_ERROR_INVALID_VALUE;
    *value = stream->hint(attribute).value_or(default_of(attribute));
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuStreamCopyAttributes(CUstream to_handle, CUstream from_handle) {
  return with_stream(to_handle, [&](Driver& driver, const std::shared_ptr<Stream>& to) {
    const std::shared_ptr<Stream> from = driver.stream(*to->context(), from_handle);
    if (from == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (from->context() != to->context()) return CUDA_ERROR_INVALID_VALUE;
    to->set_priority(from->priority());
    to->copy_hints(*from);
    return CUDA_SUCCESS;
  });
}

}  // extern "C"
