#include "libgpuslice/base/own_threads.h"

#include <pthread.h>
#include <signal.h>

#include <atomic>

#include "libgpuslice/base/clock.h"

namespace gpuslice {

namespace {

// The launch path asks too: with this model that costs one load.
__attribute__((tls_model("initial-exec"))) thread_local bool t_own = false;
std::atomic<std::uint64_t> g_end_ns{0};  // 0: there is none

}  // namespace

bool start_own_thread(void* (*body)(void*), void* argument) noexcept {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // a new thread has the mask of the one that starts it
  pthread_t thread{};
  const bool started = pthread_create(&thread, nullptr, body, argument) == 0;
  if (started) pthread_detach(thread);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return started;
}

void this_is_an_own_thread() {
  t_own = true;
}

bool is_own_thread() {
  return t_own;
}

void end_own_calls_at(std::uint64_t ns) {
  g_end_ns.store(ns);
}

bool own_calls_are_over() {
  const std::uint64_t end = g_end_ns.load();
  return end != 0 && monotonic_ns() >= end;
}

}  // namespace gpuslice
