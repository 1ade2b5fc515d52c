#include "libgpuslice/testing/fake_driver.h"

#include <deque>
#include <memory>
#include <vector>

#include "libgpuslice/base/driver.h"
#include "libgpuslice/base/stage.h"

namespace gpuslice {

int fake_blocks_per_sm = 0, fake_occupancy_questions = 0;

namespace {

struct alignas(64) Line {
  std::byte bytes[64];
};

/// Kept to the end: no caller gives it back.
void* allocate(std::size_t bytes) {
  static std::vector<std::unique_ptr<Line[]>> all;
  all.push_back(std::make_unique<Line[]>(bytes / sizeof(Line) + 1));
  return all.back().get();
}

CUresult allocate_host(void** out, std::size_t bytes, unsigned) {
  *out = allocate(bytes);
  return CUDA_SUCCESS;
}

CUresult allocate_device(CUdeviceptr* out, std::size_t bytes) {
  *out = reinterpret_cast<CUdeviceptr>(allocate(bytes));
  return CUDA_SUCCESS;
}

CUresult address_of(CUdeviceptr* out, void* host, unsigned) {
  *out = reinterpret_cast<CUdeviceptr>(host);
  return CUDA_SUCCESS;
}

CUresult make_stream(CUstream* out, unsigned) {
  *out = nullptr;
  return CUDA_SUCCESS;
}

CUresult copy(CUdeviceptr, const void*, std::size_t, CUstream) {
  return CUDA_SUCCESS;
}

struct FakeEvent {
  bool waits = false;  ///< recorded, and has not happened
  float at_ms = 0;
};

FakeEvent& event_of(CUevent handle) {
  return *reinterpret_cast<FakeEvent*>(handle);
}

std::deque<CUevent>& recorded_events() {
  static std::deque<CUevent> recorded;
  return recorded;
}

CUresult make_event(CUevent* out, unsigned) {
  static std::vector<std::unique_ptr<FakeEvent>> all;
  all.push_back(std::make_unique<FakeEvent>());
  *out = reinterpret_cast<CUevent>(all.back().get());
  return CUDA_SUCCESS;
}

CUresult record_event(CUevent event, CUstream) {
  event_of(event).waits = true;
  recorded_events().push_back(event);
  return CUDA_SUCCESS;
}

CUresult query_event(CUevent event) {
  return event_of(event).waits ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

CUresult elapsed_time(float* ms, CUevent from, CUevent to) {
  *ms = event_of(to).at_ms - event_of(from).at_ms;
  return CUDA_SUCCESS;
}

CUresult destroy_event(CUevent) {
  return CUDA_SUCCESS;
}

CUresult blocks_on_sm(int* blocks, CUfunction, int, std::size_t) {
  ++fake_occupancy_questions;
  *blocks = fake_blocks_per_sm;
  return CUDA_SUCCESS;
}

CUresult succeed(CUstream) {
  return CUDA_SUCCESS;
}

}  // namespace

const Driver& driver() {
  static const Driver table = [] {
    Driver fake;
    fake.cuMemHostAlloc = allocate_host;
    fake.cuMemAlloc_v2 = allocate_device;
    fake.cuMemHostGetDevicePointer_v2 = address_of;
    fake.cuStreamCreate = make_stream;
    fake.cuStreamSynchronize = succeed;
    fake.cuStreamDestroy_v2 = succeed;
    fake.cuMemcpyHtoDAsync_v2 = copy;
    fake.cuEventCreate = make_event;
    fake.cuEventRecord = record_event;
    fake.cuEventQuery = query_event;
    fake.cuEventElapsedTime = elapsed_time;
    fake.cuEventDestroy_v2 = destroy_event;
    fake.cuOccupancyMaxActiveBlocksPerMultiprocessor = blocks_on_sm;
    return fake;
  }();
  return table;
}

void fake_event_happens(float at_ms) {
  FakeEvent& oldest = event_of(recorded_events().front());
  recorded_events().pop_front();
  oldest = {.waits = false, .at_ms = at_ms};
}

Stage::Stage(const char* what) : what_(what) {}
Stage::~Stage() = default;

}  // namespace gpuslice
