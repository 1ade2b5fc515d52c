#include "softgpu/host/thread.h"

#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>

#include <system_error>
#include <thread>

namespace gpuctl::softgpu {

bool start_thread(const char* name, std::function<void()> body) {
  sigset_t all;
  sigset_t previous;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &previous);  // a new thread inherits the mask
  bool started = true;
  try {
    std::thread([name, body = std::move(body)] {
      pthread_setname_np(pthread_self(), name);
      prctl(PR_SET_TIMERSLACK, 1000UL);  // ns; the default of 50 us would blur every modelled duration
      body();
    }).detach();
  } catch (const std::system_error&) {
    started = false;
  }
  pthread_sigmask(SIG_SETMASK, &previous, nullptr);
  return started;
}

}  // namespace gpuctl::softgpu
