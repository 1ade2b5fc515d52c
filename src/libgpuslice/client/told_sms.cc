#include "libgpuslice/client/told_sms.h"

#include <new>

#include "ipc/stub_map.h"
#include "libgpuslice/client/client.h"

namespace gpuslice {

namespace ipc = gpuctl::ipc;

namespace {

/// Whether `sms` that it has in common with others are the last ones of a device of `all`.
bool are_last(const ipc::Grant& grant, std::uint32_t sms, std::uint32_t all) {
  return ipc::is_in_common(ipc::mode_of(ipc::load(grant.flags))) && std::uint64_t{ipc::load(grant.first)} + sms >= all;
}

}  // namespace

ToldSms& ToldSms::get() {
  static auto* told = new ToldSms;
  return *told;
}

std::uint32_t ToldSms::tell(CUdevice device, std::uint32_t real) {
  if (device < 0 || device >= static_cast<CUdevice>(ipc::kMaxDevices)) return real;
  FixedSms& fixed = devices_[device];
  const ipc::Stub* before = Client::get().stub();
  const std::uint32_t sure = before ? ipc::load(before->guaranteed_sms[device]) : 0;
  const std::uint32_t told = fixed.tell(sure, real, before && are_last(before->grant[device], sure, real));
  // A new page may have arrived meanwhile. Either the thread that brought it sees the fixed answer, or this thread sees
  // the page.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  ipc::Stub* stub = Client::get().stub();
  if (stub && ipc::load(stub->told_sms[device]) != fixed.fewer()) ipc::store(stub->told_sms[device], fixed.fewer());
  return told;
}

std::uint32_t ToldSms::told(CUdevice device, std::uint32_t real) const {
  if (device < 0 || device >= static_cast<CUdevice>(ipc::kMaxDevices)) return real;
  const std::uint32_t fewer = devices_[device].fewer();
  return fewer == 0 ? real : std::min(fewer, real);
}

void ToldSms::publish(ipc::Stub& stub) const {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  for (std::uint32_t device = 0; device < ipc::kMaxDevices; ++device)
    ipc::store(stub.told_sms[device], devices_[device].fewer());
}

void ToldSms::forget_after_fork() {
  new (this) ToldSms;
}

}  // namespace gpuslice
