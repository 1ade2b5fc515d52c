#include "libgpuslice/streams/series.h"

#include <pthread.h>

#include <chrono>
#include <mutex>
#include <new>
#include <thread>

#include "libgpuslice/streams/lane.h"

namespace gpuslice {

/// Nothing here allocates memory, so nothing throws in the program's calls.
struct SeriesList {
  std::mutex mutex;
  OpenSeries* first = nullptr;

  static SeriesList& get() {
    static auto* list = new SeriesList;  // programs launch in destructors too
    return *list;
  }

  /// Whether `holds_up` is true of any series of another thread.
  template <class HoldsUp>
  bool any(HoldsUp holds_up) {
    const auto self = static_cast<unsigned long>(pthread_self());
    const std::lock_guard lock(mutex);
    for (const OpenSeries* one = first; one; one = one->next_) {
      if (one->thread_ != self && holds_up(*one)) return true;
    }
    return false;
  }

  void remove(OpenSeries& one) {
    OpenSeries** its = &first;
    while (*its && *its != &one) its = &(*its)->next_;
    if (*its) *its = one.next_;
  }
};

namespace {

constexpr std::chrono::microseconds kLookEvery{20};

template <class HoldsUp>
void wait_while(HoldsUp holds_up) {
  while (SeriesList::get().any(holds_up)) std::this_thread::sleep_for(kLookEvery);
}

}  // namespace

OpenSeries::OpenSeries(CUstream stream, bool apart)
    : key_(stream_key(stream)), thread_(static_cast<unsigned long>(pthread_self())), apart_(apart) {
  SeriesList& list = SeriesList::get();
  const std::lock_guard lock(list.mutex);
  next_ = list.first;
  list.first = this;
  g_open_series.fetch_add(1, std::memory_order_acq_rel);
}

OpenSeries::~OpenSeries() {
  SeriesList& list = SeriesList::get();
  const std::lock_guard lock(list.mutex);
  list.remove(*this);
  g_open_series.fetch_sub(1, std::memory_order_acq_rel);
}

bool OpenSeries::holds_up(CUstream other, bool other_apart) const {
  if (stream_key(other) == key_) return true;
  const bool with_default = key_.first == CU_STREAM_LEGACY || other == CU_STREAM_LEGACY;
  return with_default && !apart_ && !other_apart;
}

void wait_for_series(CUstream stream) {
  const bool apart = is_apart(stream);
  wait_while([&](const OpenSeries& one) { return one.holds_up(stream, apart); });
}

void wait_for_all_series() {
  wait_while([](const OpenSeries& one) { return !one.apart(); });
}

void forget_series_after_fork() {
  new (&SeriesList::get()) SeriesList;
  g_open_series = 0;
}

}  // namespace gpuslice
