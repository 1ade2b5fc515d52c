// A CUDA program that does what it is told, a command a line, and answers each with one line: what the public interface
// <gpuslice/gpuslice.h> returns, or where blocks of its kernels ran.
//
//   attach SLICE | attach-null           -> code                 slice SIZE    -> code path     (SIZE 0: a null buffer)
//   hint PRIORITY                        -> code                 grant DEVICE  -> code capsm demand holding priority
//   grant-null                           -> code                 text CODE     -> gpuslice_error_string's words
//   init                                 -> "ok": cuInit, context and streams 0 and 1
//   critical STREAM ON                   -> code                 (before init: of no context)
//   shared BYTES                         -> "ok": so much dynamic shared memory may launches of record have from now on
//   launch STREAM BLOCKS ITERATIONS      -> "ok": record with 256 threads a block, into new memory
//   graph STREAM BLOCKS ITERATIONS       -> "ok": the same in a graph
//   capture STREAM MS                    -> code: of a capture into which nothing goes, of a mode in which other
//                                        threads may end it
//   finish                               -> "ok" once all kernels have ended; blocks that have not begun do nothing
//   records STREAM FILE                  -> "ok": "block start_ns sm runs" for each of the latest launch that has begun
#include <atomic>
#include <chrono>
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "driver.h"
#include "gpuslice/gpuslice.h"
#include "kernels.h"

namespace {

constexpr unsigned kThreads = 256;

struct Stream {
  CUstream handle = nullptr;
  CUdeviceptr records = 0;
  unsigned blocks = 0;
};

CUfunction kernel = nullptr;
unsigned* over = nullptr;  // in host memory that kernels read
Stream streams[2];

using Command = std::string (*)(std::istringstream& arguments);

template <class Value>
Value next(std::istringstream& arguments) {
  Value value{};
  if (!(arguments >> value)) {
    std::cerr << "an argument is missing or wrong\n";
    std::exit(2);
  }
  return value;
}

Stream& next_stream(std::istringstream& arguments) {
  return streams[next<unsigned>(arguments) % 2];
}

std::string attach(std::istringstream& arguments) {
  std::string slice;
  arguments >> slice;  // none: the empty string
  return std::to_string(gpuslice_attach(slice.c_str()));
}

std::string slice(std::istringstream& arguments) {
  std::vector<char> buffer(next<std::size_t>(arguments));
  const int code = gpuslice_slice(buffer.empty() ? nullptr : buffer.data(), buffer.size());
  return std::to_string(code) + (code == GPUSLICE_OK ? std::string(" ") + buffer.data() : "");
}

std::string grant(std::istringstream& arguments) {
  gpuslice_grant grant{};
  std::ostringstream line;
  line << gpuslice_get_grant(next<int>(arguments), &grant) << ' ' << grant.capsm << ' ' << grant.demand << ' '
       << grant.holding << ' ' << grant.priority;
  return line.str();
}

std::string init(std::istringstream&) {
  DRIVER_CHECK(cuInit(0));
  use_first_gpu();
  kernel = load_kernel(kRecordPtx, "record");
  void* word = nullptr;
  DRIVER_CHECK(cuMemHostAlloc(&word, sizeof *over, CU_MEMHOSTALLOC_DEVICEMAP));
  over = static_cast<unsigned*>(word);
  for (Stream& stream : streams) DRIVER_CHECK(cuStreamCreate(&stream.handle, CU_STREAM_NON_BLOCKING));
  return "ok";
}

std::string critical(std::istringstream& arguments) {
  const Stream& stream = next_stream(arguments);
  return std::to_string(gpuslice_stream_latency_critical(stream.handle, next<int>(arguments)));
}

std::string shared(std::istringstream& arguments) {
  DRIVER_CHECK(cuFuncSetAttribute(kernel, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, next<int>(arguments)));
  return "ok";
}

/// `in_graph`: the kernel is captured, and its graph is launched.
std::string launch_record(std::istringstream& arguments, bool in_graph) {
  Stream& stream = next_stream(arguments);
  stream.blocks = next<unsigned>(arguments);
  auto iterations = next<unsigned>(arguments);
  std::atomic_ref(*over).store(0);
  DRIVER_CHECK(cuMemAlloc(&stream.records, stream.blocks * sizeof(Record)));
  DRIVER_CHECK(cuMemsetD32Async(stream.records, 0, stream.blocks * sizeof(Record) / sizeof(unsigned), stream.handle));
  CUdeviceptr word = 0;
  DRIVER_CHECK(cuMemHostGetDevicePointer(&word, over, 0));
  void* parameters[] = {&stream.records, &word, &iterations};
  if (in_graph) DRIVER_CHECK(cuStreamBeginCapture(stream.handle, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  DRIVER_CHECK(cuLaunchKernel(kernel, stream.blocks, 1, 1, kThreads, 1, 1, 0, stream.handle, parameters, nullptr));
  if (!in_graph) return "ok";
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  DRIVER_CHECK(cuStreamEndCapture(stream.handle, &graph));
  DRIVER_CHECK(cuGraphInstantiateWithFlags(&exec, graph, 0));
  DRIVER_CHECK(cuGraphDestroy(graph));
  DRIVER_CHECK(cuGraphLaunch(exec, stream.handle));
  DRIVER_CHECK(cuGraphExecDestroy(exec));  // what runs of it goes on
  return "ok";
}

std::string launch(std::istringstream& arguments) {
  return launch_record(arguments, false);
}

std::string graph(std::istringstream& arguments) {
  return launch_record(arguments, true);
}

std::string capture(std::istringstream& arguments) {
  const Stream& stream = next_stream(arguments);
  DRIVER_CHECK(cuStreamBeginCapture(stream.handle, CU_STREAM_CAPTURE_MODE_GLOBAL));
  std::this_thread::sleep_for(std::chrono::milliseconds(next<int>(arguments)));
  CUgraph graph = nullptr;
  const CUresult result = cuStreamEndCapture(stream.handle, &graph);
  if (graph) DRIVER_CHECK(cuGraphDestroy(graph));
  return std::to_string(result);
}

std::string finish(std::istringstream&) {
  std::atomic_ref(*over).store(1);
  for (const Stream& stream : streams) DRIVER_CHECK(cuStreamSynchronize(stream.handle));
  return "ok";
}

std::string records(std::istringstream& arguments) {
  const Stream& stream = next_stream(arguments);
  std::vector<Record> found(stream.blocks);
  DRIVER_CHECK(cuMemcpyDtoH(found.data(), stream.records, stream.blocks * sizeof(Record)));
  std::ofstream file(next<std::string>(arguments));
  for (unsigned block = 0; block < stream.blocks; ++block) {
    const Record& record = found[block];
    if (record.runs != 0) file << block << ' ' << record.start_ns << ' ' << record.sm << ' ' << record.runs << '\n';
  }
  return "ok";
}

const std::map<std::string, Command> kCommands = {
    {"attach", attach},
    {"attach-null", [](std::istringstream&) { return std::to_string(gpuslice_attach(nullptr)); }},
    {"slice", slice},
    {"hint",
     [](std::istringstream& arguments) { return std::to_string(gpuslice_set_priority_hint(next<int>(arguments))); }},
    {"grant", grant},
    {"grant-null", [](std::istringstream&) { return std::to_string(gpuslice_get_grant(0, nullptr)); }},
    {"text", [](std::istringstream& arguments) { return std::string(gpuslice_error_string(next<int>(arguments))); }},
    {"init", init},
    {"critical", critical},
    {"shared", shared},
    {"launch", launch},
    {"graph", graph},
    {"capture", capture},
    {"finish", finish},
    {"records", records},
};

}  // namespace

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string name;
    words >> name;
    const auto command = kCommands.find(name);
    if (command == kCommands.end()) {
      std::cerr << "unknown command: " << line << '\n';
      return 2;
    }
    std::cout << command->second(words) << std::endl;
  }
  return 0;
}
