#include "libgpuslice/launch/opaque_work.h"

#include <algorithm>

namespace gpuslice {

void OpaqueWork::begin(std::uint64_t blocks, std::uint32_t sms, const OpaqueJob& job, bool waits) {
  busy_.store(true);
  if (demand_ == 0 || job_.issued_ns == 0) job_ = job;
  demand_ = static_cast<std::uint32_t>(std::min<std::uint64_t>(std::max<std::uint64_t>(demand_, blocks), sms));
  if (!waits) running_ = demand_;
}

void OpaqueWork::enter_gate(Waiting& one) {
  Waiting** last = &at_gate_;
  while (*last) last = &(*last)->next;
  *last = &one;
}

void OpaqueWork::leave_gate(Waiting& one) {
  Waiting** its = &at_gate_;
  while (*its != &one) its = &(*its)->next;
  *its = one.next;
  job_ = one.job;
  running_ = demand_;
}

const OpaqueJob* OpaqueWork::job() const {
  if (at_gate_) return &at_gate_->job;
  return demand_ == 0 || job_.issued_ns == 0 ? nullptr : &job_;
}

bool OpaqueWork::note(std::uint32_t demand, const Opaque::Look& look) {
  if (demand == 0 && busy_.load()) return false;
  const bool same_job = demand > 0 && (!look.any || look.oldest.issued_ns == job_.issued_ns);
  if (!same_job) job_ = look.oldest;
  if (demand == demand_ && look.running == running_ && same_job) return false;
  demand_ = demand;
  running_ = look.running;
  return true;
}

}  // namespace gpuslice
