#include "libgpuslice/agent/stub_page.h"

#include <cstddef>

#include "libgpuslice/base/debug.h"
#include "libgpuslice/base/driver.h"

namespace gpuslice {

namespace ipc = gpuctl::ipc;
using gpuctl::Polled;

std::uint32_t StubPage::adopt() {
  const int device = context_.view.device_index();
  ipc::Stub* stub = Client::get().stub();
  ipc::Grant* grant = stub && device < static_cast<int>(ipc::kMaxDevices) ? &stub->grant[device] : nullptr;
  Polled* polled = &context_.book.slots().polled();
  CUdeviceptr address = context_.book.slots().polled_address();
  if (grant) {
    CUdeviceptr page = 0;
    CUresult result = driver().cuMemHostRegister_v2(stub, ipc::kStubBytes,
                                                    CU_MEMHOSTREGISTER_DEVICEMAP | CU_MEMHOSTREGISTER_PORTABLE);
    if (result == CUDA_SUCCESS || result == CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED) {
      if (driver().cuMemHostGetDevicePointer_v2(&page, stub, 0) == CUDA_SUCCESS) {
        polled = &grant->polled;
        address = page + reinterpret_cast<std::byte*>(polled) - reinterpret_cast<std::byte*>(stub);
      }
    }
    if (page == 0) {
      debug("the stub page cannot be mapped into the GPU (%d): the agent copies grants", result);
      ipc::store(polled->capsm, ipc::load(grant->polled.capsm));
    }
  }
  std::lock_guard lock(context_.book.mutex());
  if (Polled* old = context_.view.polled(); old && old != polled) old_polled_.push_back(old);
  std::erase(old_polled_, polled);
  stub_ = stub;
  grant_ = grant;
  usage_ = grant ? &stub->usage[device] : nullptr;
  copies_ = grant && polled == &context_.book.slots().polled();
  const std::uint32_t epoch_now = epoch();
  context_.limits.write_to(*polled);
  context_.limits.set_polled_address(address);
  context_.view.set_polled(polled);
  context_.targets = Client::get().targets();
  context_.usage.forget_told();
  if (grant) context_.usage.publish();
  return epoch_now;
}

void StubPage::copy_grant() const {
  if (!grant_ || (!copies_ && old_polled_.empty())) return;
  const std::uint32_t capsm = ipc::load(grant_->polled.capsm);
  if (copies_) ipc::store(context_.book.slots().polled().capsm, capsm);
  for (Polled* old : old_polled_) ipc::store(old->capsm, capsm);
}

}  // namespace gpuslice
