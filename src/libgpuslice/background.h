// The thread that compiles beside the program: one at a time, at a low priority, and gone when there is nothing left to
// do.
//
// Its priority is nice, not SCHED_IDLE: the driver may hold locks while it compiles that the program waits for, so on a
// machine without an idle processor it must still get on. What has begun cannot be broken off. So the end of the
// process, or of the context it is done in, waits for it, as the load would have; what has not begun by then is
// dropped.
#pragma once

#include <cuda.h>

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace gpuslice {

class Background {
 public:
  /// The one of this process; never destroyed.
  static Background& get();

  struct Job {
    CUcontext context = nullptr;    ///< that it is done in
    CUdevice device = 0;            ///< of which that is a context
    std::function<void()> run;      ///< on the thread; throws nothing
    std::function<void()> dropped;  ///< called instead, by whoever drops it
  };
  /// False: no thread could be started, and nothing is called.
  bool add(Job job);

  /// The context, or all those of the device, are about to end: drops what has not begun there and waits for what has.
  void leave(CUcontext context);
  void leave_device(CUdevice device);

  /// Drops all that has not begun and waits for the rest. At the end of the process; later jobs are refused.
  void stop();

  /// In a forked child, where the thread is not.
  void forget_after_fork();

 private:
  void work();
  template <class Predicate>
  void leave_if(Predicate ends);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> waiting_;
  Job running_;           ///< its functions are moved from
  bool working_ = false;  ///< the thread has not decided to end
  bool busy_ = false;     ///< it runs a job
  bool stopped_ = false;
  bool at_exit_ = false;  ///< stop() is called at the end of the process
  std::thread thread_;
};

}  // namespace gpuslice
