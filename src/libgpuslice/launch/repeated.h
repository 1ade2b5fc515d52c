// A launch in original form that is confined, and repeats one of the same kernel and shape while the daemon's decision
// is the same: it goes where that one went, if its lane is open there. The decision was made once, by launch() in
// interpose/launch.cc, which has launches repeated only if nothing but the grant, kernel and shape had a part in it.
//
// Whatever happens now and then, such as a mark of the lane, waits for a launch that goes the long way. Each 16th of a
// lane does.
#pragma once

#include <cuda.h>

#include <array>
#include <cstdint>

#include "libgpuslice/base/launch_words.h"
#include "libgpuslice/launch/context.h"
#include "libgpuslice/streams/lane.h"

namespace gpuslice {

/// What the decision was made of.
struct Shape {
  std::uint64_t blocks = 0;
  std::uint32_t threads = 0, shared = 0;
  bool operator==(const Shape&) const = default;
};

/// The latest decisions of one thread.
class RepeatedLaunches {
 public:
  /// The launch went into the lane's confined stream. `asked`: with the grant as it was before anything was decided.
  /// `suspect`: the kernel's hash if its blocks might wait for what does not fit there with them, else 0.
  static void note(Context& context, Lane& lane, const Opaque::Launch& asked, std::uint64_t suspect);

  /// The lane for a launch that repeats one, with its mutex held; else none. Takes no lock unless it may be so.
  class Turn {
   public:
    Turn(CUfunction function, CUstream stream, const Shape& shape);
    ~Turn();
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

    explicit operator bool() const { return lane_ != nullptr; }
    /// The stream to launch into. A launch that the driver refuses there goes the long way.
    CUstream stream() const { return lane_->place().there.stream; }
    void launched();

   private:
    Lane* lane_ = nullptr;
    Context* context_ = nullptr;
    KernelInfo* kernel_ = nullptr;
  };

 private:
  struct alignas(64) Decision {
    const KernelInfo* kernel = nullptr;
    Shape shape;
    std::uint32_t epoch = 0;
    std::uint32_t generation = 0;  ///< LaunchWords::kernels at that time
    std::uint64_t suspect = 0;     ///< as Lane::suspect
    const Context* context = nullptr;
    std::uint32_t sms = 0;  ///< of the part where it went; its blocks may need as many
  };
  static constexpr std::size_t kDecisions = 1024;  // a large network has some hundred kernels, each in several shapes

  static RepeatedLaunches* make();
  static std::size_t place_of(const KernelInfo* kernel, const Shape& shape);
  /// Null: there is none that may be repeated.
  const Decision* find(const KernelInfo* kernel, const Shape& shape, std::uint32_t epoch) const;

  /// Null: none was made in this thread, or it ends.
  static __attribute__((tls_model("initial-exec"))) thread_local constinit RepeatedLaunches* t_latest;

  Context* context_ = nullptr;  ///< of t_latest_lane
  const gpuctl::ipc::Stub* page_ = nullptr;
  std::array<Decision, kDecisions> decisions_{};

  friend struct RepeatedOwner;
};

}  // namespace gpuslice
