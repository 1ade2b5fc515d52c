// The stub page whose grant is in force in a context: what its workers poll, and where its agent writes its usage.
#pragma once

#include <cstdint>
#include <vector>

#include "ipc/stub_map.h"
#include "libgpuslice/launch/context_state.h"

namespace gpuslice {

/// For the agent alone.
class StubPage {
 public:
  /// `context` outlives this object.
  explicit StubPage(ContextState& context) : context_(context) {}

  /// Whether this is the page that the client has now.
  bool current() const { return Client::get().stub() == stub_; }
  /// Makes the workers of later launches poll the client's page. Kernels launched before go on polling the page before,
  /// which copy_grant() keeps equal to this one. The context must be current. Returns the epoch of its grant.
  std::uint32_t adopt();
  /// Copies the grant to where workers poll it, if that is not this page.
  void copy_grant() const;

  /// Null: there was no daemon yet.
  const gpuctl::ipc::Grant* grant() const { return grant_; }
  gpuctl::ipc::Usage* usage() const { return usage_; }
  std::uint32_t epoch() const { return grant_ ? gpuctl::ipc::load(grant_->epoch) : 0; }

 private:
  ContextState& context_;
  gpuctl::ipc::Stub* stub_ = nullptr;
  const gpuctl::ipc::Grant* grant_ = nullptr;
  gpuctl::ipc::Usage* usage_ = nullptr;
  bool copies_ = false;                      ///< the GPU cannot map the page, so the agent copies grants
  std::vector<gpuctl::Polled*> old_polled_;  ///< of earlier pages, which running kernels may still poll
};

}  // namespace gpuslice
