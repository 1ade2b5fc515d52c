// Access between devices: cuDeviceCanAccessPeer, cuDeviceGetP2PAttribute, cuCtx*PeerAccess, cuMemcpy*Peer*. Each device
// can reach the memory of every other one.
#include <cuda.h>

#include <array>

#include "softgpu/driver/driver.h"
#include "softgpu/memory_api/copy.h"

using namespace gpuctl::softgpu;

namespace {

/// Runs `body(current, peer)` with the current context and a context on another device.
template <class Body>
CUresult with_peer(CUcontext handle, Body&& body, const char* call = __builtin_FUNCTION()) noexcept {
  return with_context(
      [&](Driver& driver, Context& context) {
        const std::shared_ptr<Context> peer = driver.contexts.find(handle);
        if (peer == nullptr || peer.get() == &context) return CUDA_ERROR_INVALID_CONTEXT;
        if (&peer->device() == &context.device()) return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
        return static_cast<CUresult>(body(context, *peer));
      },
      call);
}

/// The two contexts of a copy.
using Ends = std::array<std::shared_ptr<Context>, 2>;

/// Runs `body(driver, current, ends)`.
template <class Body>
CUresult with_ends(CUcontext to, CUcontext from, Body&& body, const char* call) noexcept {
  return with_context(
      [&](Driver& driver, Context& context) {
        const Ends ends{driver.contexts.find(to), driver.contexts.find(from)};
        for (const auto& end : ends) {
          if (end == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
          if (end->error() != CUDA_SUCCESS) return end->error();
        }
        return static_cast<CUresult>(body(driver, context, ends));
      },
      call);
}

/// Submits a copy that waits for all earlier work in both contexts; later work there waits for the copy. The caller
/// does not wait.
CUresult copy_in_order(CUcontext to, CUcontext from, const CUDA_MEMCPY3D& what,
                       const char* call = __builtin_FUNCTION()) {
  return with_ends(
      to, from,
      [&](Driver& driver, Context& context, const Ends& ends) -> CUresult {
        const std::shared_ptr<Stream> here = driver.stream(context, nullptr);
        const auto wait_for = [](const std::shared_ptr<Stream>& stream, const std::shared_ptr<Recording>& recording) {
          return submit(
              stream, [=, of = stream->context()] { recording->wait_unless(of->stopped()); }, true);
        };
        for (const auto& end : ends) {
          if (end.get() == &context) continue;
          const auto before = std::make_shared<Recording>();
          CUresult submitted = submit(end->legacy_stream(), [before] { before->pass(); });
          if (submitted == CUDA_SUCCESS) submitted = wait_for(here, before);
          if (submitted != CUDA_SUCCESS) return submitted;
        }
        if (const CUresult copied = submit_copy(nullptr, what, false, "cuMemcpyPeer"); copied != CUDA_SUCCESS)
          return copied;
        const auto done = std::make_shared<Recording>();
        CUresult submitted = submit(here, [done] { done->pass(); });
        for (const auto& end : ends) {
          if (submitted == CUDA_SUCCESS && end.get() != &context) submitted = wait_for(end->legacy_stream(), done);
        }
        return submitted;
      },
      call);
}

CUresult copy_async(CUcontext to, CUcontext from, const CUDA_MEMCPY3D& what, CUstream stream,
                    const char* call = __builtin_FUNCTION()) {
  return with_ends(
      to, from, [&](Driver&, Context&, const Ends&) { return submit_copy(stream, what, false, call); }, call);
}

CUDA_MEMCPY3D flat(CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
  return flat_copy(CU_MEMORYTYPE_DEVICE, to, CU_MEMORYTYPE_DEVICE, from, bytes);
}

/// The same without the contexts.
CUDA_MEMCPY3D plain(const CUDA_MEMCPY3D_PEER& peer) {
  CUDA_MEMCPY3D what{};
  what.srcXInBytes = peer.srcXInBytes;
  what.srcY = peer.srcY;
  what.srcZ = peer.srcZ;
  what.srcMemoryType = peer.srcMemoryType;
  what.srcHost = peer.srcHost;
  what.srcDevice = peer.srcDevice;
  what.srcPitch = peer.srcPitch;
  what.srcHeight = peer.srcHeight;
  what.dstXInBytes = peer.dstXInBytes;
  what.dstY = peer.dstY;
  what.dstZ = peer.dstZ;
  what.dstMemoryType = peer.dstMemoryType;
  what.dstHost = peer.dstHost;
  what.dstDevice = peer.dstDevice;
  what.dstPitch = peer.dstPitch;
  what.dstHeight = peer.dstHeight;
  what.WidthInBytes = peer.WidthInBytes;
  what.Height = peer.Height;
  what.Depth = peer.Depth;
  return what;
}

}  // namespace

extern "C" {

CUresult CUDAAPI cuDeviceCanAccessPeer(int* can_access, CUdevice device, CUdevice peer) {
  return with_device(device, [&](Driver& driver, Device& found) {
    const Device* other = driver.device(peer);
    if (can_access == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (other == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    *can_access = other != &found ? 1 : 0;
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuDeviceGetP2PAttribute(int* value, CUdevice_P2PAttribute attribute, CUdevice device, CUdevice peer) {
  return with_device(device, [&](Driver& driver, Device& found) {
    const Device* other = driver.device(peer);
    if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (other == nullptr || other == &found) return CUDA_ERROR_INVALID_DEVICE;
    switch (attribute) {
      case CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK:
      case CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED:
        *value = 0;
        return CUDA_SUCCESS;
      case CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED:
      case CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED:
        *value = 1;
        return CUDA_SUCCESS;
      default:
        return CUDA_ERROR_INVALID_VALUE;
    }
  });
}

CUresult CUDAAPI cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags) {
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  return with_peer(peer, [](Context& context, Context& other) { return context.enable_peer(other); });
}

CUresult CUDAAPI cuCtxDisablePeerAccess(CUcontext peer) {
  return with_peer(peer, [](Context& context, Context& other) { return context.disable_peer(other); });
}

CUresult CUDAAPI cuMemcpyPeer(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                              size_t bytes) {
  return copy_in_order(to_context, from_context, flat(to, from, bytes));
}

CUresult CUDAAPI cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                                   size_t bytes, CUstream stream) {
  return copy_async(to_context, from_context, flat(to, from, bytes), stream);
}

CUresult CUDAAPI cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER* what) {
  if (what == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return copy_in_order(what->dstContext, what->srcContext, plain(*what));
}

CUresult CUDAAPI cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER* what, CUstream stream) {
  if (what == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return copy_async(what->dstContext, what->srcContext, plain(*what), stream);
}

}  // extern "C"
