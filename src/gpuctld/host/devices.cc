#include "gpuctld/host/devices.h"

#include <cuda.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <boost/json.hpp>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "ipc/fields.h"
#include "ipc/message.h"
#include "ipc/stub.h"
#include "ipc/unique_fd.h"

#ifndef GPUCTL_SOFTGPU_DIR
#error "the build says where the software GPU is installed"
#endif

namespace gpuctl::daemon {

namespace json = boost::json;

namespace {

/// cuda.h renames functions to their newest version by macro, so the names that are looked up must be renamed too.
#define GPUCTLD_NAME_OF(function) GPUCTLD_TEXT(function)
#define GPUCTLD_TEXT(text) #text

std::string uuid_text(const CUuuid& uuid) {
  std::string text = "GPU-";
  for (std::size_t i = 0; i < sizeof uuid.bytes; ++i) {
    std::array<char, 3> digits{};
    std::snprintf(digits.data(), digits.size(), "%02x", static_cast<unsigned char>(uuid.bytes[i]));
    text += digits.data();
    if (i == 3 || i == 5 || i == 7 || i == 9) text += '-';
  }
  return text;
}

/// "gpuctl-softgpu" in hexadecimal digits. It tells the software GPU, which can also come first on the library path.
constexpr std::string_view kSoftwareUuid = "GPU-67707563-746c-2d73-6f66-74677075";

struct Driver {
  explicit Driver(const std::string& library) : handle(::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL)) {}

  template <class Function>
  Function* find(const char* name) {
    auto* function = handle == nullptr ? nullptr : reinterpret_cast<Function*>(::dlsym(handle, name));
    if (function == nullptr && problem.empty())
      problem = handle == nullptr ? ::dlerror() : std::string(name) + " is missing";
    return function;
  }

  void* handle;
  std::string problem;
};

/// Runs in the child. Returns the answer as JSON.
json::object ask(const std::string& library) {
  Driver driver(library);
  auto* const init = driver.find<decltype(cuInit)>("cuInit");
  auto* const count_of = driver.find<decltype(cuDeviceGetCount)>("cuDeviceGetCount");
  auto* const get = driver.find<decltype(cuDeviceGet)>("cuDeviceGet");
  auto* const name_of = driver.find<decltype(cuDeviceGetName)>("cuDeviceGetName");
  auto* const uuid_of = driver.find<decltype(cuDeviceGetUuid)>(GPUCTLD_NAME_OF(cuDeviceGetUuid));
  auto* const memory_of = driver.find<decltype(cuDeviceTotalMem)>(GPUCTLD_NAME_OF(cuDeviceTotalMem));
  auto* const attribute_of = driver.find<decltype(cuDeviceGetAttribute)>("cuDeviceGetAttribute");
  if (!driver.problem.empty()) return {{"error", driver.problem}};

  int count = 0;
  CUresult result = init(0);
  if (result == CUDA_ERROR_NO_DEVICE) return {{"devices", json::array()}};
  if (result == CUDA_SUCCESS) result = count_of(&count);
  json::array devices;
  for (int i = 0; i < count && result == CUDA_SUCCESS; ++i) {
    CUdevice device{};
    std::array<char, 256> name{};
    CUuuid uuid{};
    std::size_t memory = 0;
    int sms = 0;
    result = get(&device, i);
    if (result == CUDA_SUCCESS) result = name_of(name.data(), static_cast<int>(name.size()) - 1, device);
    if (result == CUDA_SUCCESS) result = uuid_of(&uuid, device);
    if (result == CUDA_SUCCESS) result = memory_of(&memory, device);
    if (result == CUDA_SUCCESS) result = attribute_of(&sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device);
    devices.push_back(json::object{{"name", ipc::to_utf8(name.data())},
                                   {"uuid", uuid_text(uuid)},
                                   {"sms", sms},
                                   {"memory", static_cast<std::int64_t>(memory)}});
  }
  if (result != CUDA_SUCCESS) return {{"error", "the CUDA driver answers with error " + std::to_string(result)}};
  return {{"devices", std::move(devices)}};
}

[[noreturn]] void be_the_child(const std::string& library, int out, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  // Not through MPS: that would start its server for our user, and would show part of the GPU when a limit is set.
  ::setenv("CUDA_MPS_PIPE_DIRECTORY", "/nonexistent", 1);
  ::unsetenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE");
  const std::string answer = ipc::to_text(ask(library));
  for (std::size_t sent = 0; sent < answer.size();) {
    const ssize_t n = ::write(out, answer.data() + sent, answer.size() - sent);
    if (n <= 0) break;
    sent += static_cast<std::size_t>(n);
  }
  ::_exit(0);
}

/// Everything up to the end of the stream; empty if that does not come before the timeout.
std::string read_all(int fd, std::chrono::milliseconds timeout) {
  const auto end = std::chrono::steady_clock::now() + timeout;
  std::string text;
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    pollfd wait{fd, POLLIN, 0};
    const int ready = left.count() <= 0 ? 0 : ::poll(&wait, 1, static_cast<int>(left.count()));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return {};
    std::array<char, 4096> buffer;
    const ssize_t n = ::read(fd, buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(n));
  }
}

Result<std::vector<Gpu>> understand(const std::string& text, bool software) {
  boost::system::error_code broken;
  const json::value value = json::parse(text, broken);
  if (broken || !value.is_object()) return fail("the CUDA driver did not answer (it hung or crashed)");
  if (const json::value* error = value.as_object().if_contains("error"))
    return fail(error->is_string() ? std::string(error->as_string()) : "the CUDA driver failed");
  ipc::Fields fields(value.as_object());
  std::vector<Gpu> devices;
  for (ipc::Fields& device : fields.objects("devices")) {
    Gpu gpu;
    gpu.index = static_cast<int>(devices.size());
    gpu.name = device.text("name");
    gpu.uuid = device.text("uuid");
    gpu.software = software || gpu.uuid.starts_with(kSoftwareUuid);
    gpu.sms = static_cast<std::uint32_t>(device.integer("sms", 1, ipc::kUnlimited - 1));
    gpu.memory_bytes = static_cast<std::uint64_t>(device.integer("memory", 0));
    devices.push_back(std::move(gpu));
  }
  if (!fields.ok()) return fields.error();
  return devices;
}

}  // namespace

Result<std::vector<Gpu>> probe_devices(const std::string& library, bool software, std::chrono::milliseconds timeout) {
  std::array<int, 2> ends;
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return fail(std::string("pipe: ") + std::strerror(errno));
  ipc::UniqueFd in(ends[0]), out(ends[1]);
  const pid_t parent = ::getpid(), child = ::fork();
  if (child < 0) return fail(std::string("fork: ") + std::strerror(errno));
  if (child == 0) be_the_child(library, out.get(), parent);
  out.reset();
  const std::string answer = read_all(in.get(), timeout);
  if (answer.empty()) ::kill(child, SIGKILL);
  while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  auto devices = understand(answer, software);
  if (devices) return devices;
  const std::string& why = devices.error().message;  // the dynamic linker's text names the library already
  return why.starts_with(library + ": ") ? fail(why) : fail(library + ": " + why);
}

std::string software_gpu_library() {
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (!error) {
    const auto beside = self.parent_path().parent_path() / "softgpu" / "libcuda.so.1";
    if (std::filesystem::exists(beside, error)) return beside.string();
  }
  return std::string(GPUCTL_SOFTGPU_DIR) + "/libcuda.so.1";
}

Result<std::vector<Gpu>> find_devices(bool software, std::string& note) {
  std::string why = "--software-gpu";
  if (!software) {
    auto devices = probe_devices("libcuda.so.1", false);
    if (devices && !devices->empty()) return devices;
    why = devices ? "the driver reports no device" : devices.error().message;
  }
  auto devices = probe_devices(software_gpu_library(), true);
  if (devices && devices->empty()) return fail("the software GPU has no device");
  if (devices)
    note = "no NVIDIA GPU is managed, the software GPU is (" + why + ")";
  else if (!software)
    return fail("no GPU: " + why + "; no software GPU either: " + devices.error().message);
  return devices;
}

bool same_uuid(std::string_view a, std::string_view b) {
  const auto digits = [](std::string_view uuid) {
    if (uuid.substr(0, 4) == "GPU-") uuid.remove_prefix(4);
    std::string result;
    for (char c : uuid)
      if (c != '-') result += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return result;
  };
  return digits(a) == digits(b);
}

}  // namespace gpuctl::daemon
