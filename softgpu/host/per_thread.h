// An object for each thread that outlives main(). A thread_local object is gone when destructors of static objects run,
// and programs wait for the GPU in those.
#pragma once

#include <pthread.h>

namespace gpuctl::softgpu {

/// Never destroyed itself. A thread's object is made at its first use and deleted when the thread ends; the main
/// thread's is never deleted.
template <class T>
class PerThread {
 public:
  PerThread() {
    pthread_key_create(&key_, [](void* object) { delete static_cast<T*>(object); });
  }
  PerThread(const PerThread&) = delete;
  PerThread& operator=(const PerThread&) = delete;

  T& get() {
    auto* object = static_cast<T*>(pthread_getspecific(key_));
    if (object == nullptr) {
      object = new T;
      pthread_setspecific(key_, object);
    }
    return *object;
  }

 private:
  ~PerThread() = default;  // use `new`

  pthread_key_t key_ = 0;
};

}  // namespace gpuctl::softgpu
