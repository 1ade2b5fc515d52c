// cuGreenCtx*, cuDevSmResource*, cuDevResource*, cu*GetDevResource, cuStreamGetGreenCtx.
#include <cuda.h>

#include <algorithm>
#include <bit>

#include "softgpu/driver/driver.h"

using namespace gpuctl::softgpu;

namespace {

CUresult give_resource(const SmResource& from, CUdevResource* to, CUdevResourceType type) {
  if (to == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (type != CU_DEV_RESOURCE_TYPE_SM) return CUDA_ERROR_INVALID_RESOURCE_TYPE;
  *to = to_handle(from);
  return CUDA_SUCCESS;
}

SmResource whole_device(const Device& device) {
  return {.sms = first_sms(device.table->sms())};
}

unsigned size_of(const SmResource& resource) {
  return static_cast<unsigned>(std::popcount(resource.sms));
}

/// Joins the SMs of resources, if they may be described together.
CUresult join(const CUdevResource* resources, unsigned count, ResourceDescription* joined) {
  std::optional<std::uint64_t> split;
  for (unsigned i = 0; i < count; ++i) {
    const std::optional<SmResource> one = from_handle(resources[i]);
    if (!one) return CUDA_ERROR_INVALID_RESOURCE_TYPE;
    if (count > 1 && (one->split == 0 || one->split != split.value_or(one->split) || (one->sms & joined->sms) != 0))
      return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
    split = one->split;
    joined->sms |= one->sms;
    joined->apart = one->apart;
  }
  return joined->sms != 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
}

}  // namespace

extern "C" {

CUresult CUDAAPI cuDeviceGetDevResource(CUdevice device, CUdevResource* resource, CUdevResourceType type) {
  return with_driver([&](Driver& driver) {
    const Device* found = driver.device(device);
    return found == nullptr ? CUDA_ERROR_INVALID_DEVICE : give_resource(whole_device(*found), resource, type);
  });
}

CUresult CUDAAPI cuCtxGetDevResource(CUcontext handle, CUdevResource* resource, CUdevResourceType type) {
  return with_driver([&](Driver& driver) {
    const std::shared_ptr<Context> context = driver.contexts.find(handle);
    return context == nullptr ? CUDA_ERROR_INVALID_CONTEXT
                              : give_resource(whole_device(context->device()), resource, type);
  });
}

CUresult CUDAAPI cuGreenCtxGetDevResource(CUgreenCtx handle, CUdevResource* resource, CUdevResourceType type) {
  return with_driver([&](Driver& driver) {
    const std::shared_ptr<GreenContext> green = driver.green_contexts.find(handle);
    return green == nullptr ? CUDA_ERROR_INVALID_CONTEXT : give_resource(green->resource, resource, type);
  });
}

CUresult CUDAAPI cuDevSmResourceSplitByCount(CUdevResource* result, unsigned int* count, const CUdevResource* input,
                                             CUdevResource* remaining, unsigned int flags, unsigned int least) {
  return with_driver([&](Driver& driver) {
    // As on an H100, there is at most one flag.
    const bool apart = flags == CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING;
    if (count == nullptr || input == nullptr ||
        (flags != 0 && !apart && flags != CU_DEV_SM_RESOURCE_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE))
      return CUDA_ERROR_INVALID_VALUE;
    const std::optional<SmResource> whole = from_handle(*input);
    if (!whole) return CUDA_ERROR_INVALID_RESOURCE_TYPE;
    if (whole->split != 0) return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
    if (least > size_of(*whole)) return CUDA_ERROR_INVALID_VALUE;
    const unsigned size = group_size(least, size_of(*whole), apart);
    const unsigned possible = size_of(*whole) / size;
    if (possible == 0) return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
    *count = result == nullptr ? possible : std::min(*count, possible);
    if (result == nullptr) return CUDA_SUCCESS;
    const std::uint64_t split = driver.next_split++;
    std::uint64_t left = whole->sms;
    for (unsigned i = 0; i < *count; ++i) {
      const std::uint64_t sms = sms_of_group(whole->sms, size, possible, i, apart);
      result[i] = to_handle({sms, split, apart});
      left &= ~sms;
    }
    if (remaining != nullptr) *remaining = left != 0 ? to_handle({left, split, apart}) : CUdevResource{};
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuDevResourceGenerateDesc(CUdevResourceDesc* result, CUdevResource* resources, unsigned int count) {
  return with_driver([&](Driver& driver) {
    if (result == nullptr || resources == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
    ResourceDescription description;
    if (const CUresult joined = join(resources, count, &description); joined != CUDA_SUCCESS) return joined;
    *result = driver.resource_descriptions.add(std::make_shared<ResourceDescription>(description));
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuGreenCtxCreate(CUgreenCtx* result, CUdevResourceDesc description, CUdevice device,
                                  unsigned int flags) {
  return with_driver([&](Driver& driver) {
    const std::shared_ptr<ResourceDescription> found = driver.resource_descriptions.find(description);
    if (result == nullptr || found == nullptr || flags != CU_GREEN_CTX_DEFAULT_STREAM) return CUDA_ERROR_INVALID_VALUE;
    Device* const where = driver.device(device);
    if (where == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    if (const CUresult unsafe = driver.captures.check_unsafe(); unsafe != CUDA_SUCCESS) return unsafe;
    driver.synchronize_all(where);
    *result = driver.make_green_context(*where, *found);
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuGreenCtxDestroy(CUgreenCtx handle) {
  return with_driver([&](Driver& driver) {
    const std::shared_ptr<GreenContext> green = driver.green_contexts.remove(handle);
    if (green == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    green->destroyed = true;
    return driver.release_primary(green->context->device());
  });
}

CUresult CUDAAPI cuGreenCtxStreamCreate(CUstream* result, CUgreenCtx handle, unsigned int flags, int priority) {
  return with_driver([&](Driver& driver) {
    const std::shared_ptr<GreenContext> green = driver.green_contexts.find(handle);
    if (green == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    if (result == nullptr || flags != CU_STREAM_NON_BLOCKING) return CUDA_ERROR_INVALID_VALUE;
    if (green->context->error() != CUDA_SUCCESS) return green->context->error();
    *result = driver.streams.add(green->context->create_stream(Stream::Kind::kNonBlocking, priority, green));
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuStreamGetGreenCtx(CUstream handle, CUgreenCtx* result) {
  return with_stream(handle, [&](Driver&, const std::shared_ptr<Stream>& stream) {
    if (result == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *result = reinterpret_cast<CUgreenCtx>(stream->green().get());
    return CUDA_SUCCESS;
  });
}

}  // extern "C"
