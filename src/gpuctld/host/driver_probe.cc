#include "gpuctld/host/driver_probe.h"

#include <cuda.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <boost/json.hpp>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/read_write.h"
#include "gpuctld/host/energy.h"
#include "gpuctld/protocol/when_ended.h"
#include "ipc/fields.h"
#include "ipc/message.h"
#include "ipc/stub.h"
#include "ipc/unique_fd.h"

namespace gpuctl::daemon {

namespace asio = boost::asio;
namespace json = boost::json;
using boost::system::error_code;
using Descriptor = asio::posix::stream_descriptor;

namespace {

/// An answer about a thousand devices is shorter.
constexpr std::size_t kMostAnswer = 1u << 20;

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
json::object ask(const std::string& library, const std::string& nvml_library) {
  Driver driver(library);
  auto* const init = driver.find<decltype(cuInit)>("cuInit");
  auto* const count_of = driver.find<decltype(cuDeviceGetCount)>("cuDeviceGetCount");
  auto* const get = driver.find<decltype(cuDeviceGet)>("cuDeviceGet");
  auto* const name_of = driver.find<decltype(cuDeviceGetName)>("cuDeviceGetName");
  auto* const uuid_of = driver.find<decltype(cuDeviceGetUuid)>(GPUCTLD_NAME_OF(cuDeviceGetUuid));
  auto* const memory_of = driver.find<decltype(cuDeviceTotalMem)>(GPUCTLD_NAME_OF(cuDeviceTotalMem));
  auto* const attribute_of = driver.find<decltype(cuDeviceGetAttribute)>("cuDeviceGetAttribute");
  if (!driver.problem.empty()) return {{"error", driver.problem}};

  const Nvml nvml(nvml_library);
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
    int sms = 0, compute_mode = CU_COMPUTEMODE_DEFAULT;
    result = get(&device, i);
    if (result == CUDA_SUCCESS) result = name_of(name.data(), static_cast<int>(name.size()) - 1, device);
    if (result == CUDA_SUCCESS) result = uuid_of(&uuid, device);
    if (result == CUDA_SUCCESS) result = memory_of(&memory, device);
    if (result == CUDA_SUCCESS) result = attribute_of(&sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device);
    if (result == CUDA_SUCCESS) attribute_of(&compute_mode, CU_DEVICE_ATTRIBUTE_COMPUTE_MODE, device);
    devices.push_back(json::object{{"name", ipc::to_utf8(name.data())},
                                   {"uuid", uuid_text(uuid)},
                                   {"sms", sms},
                                   {"exclusive", compute_mode == CU_COMPUTEMODE_EXCLUSIVE_PROCESS},
                                   {"memory", static_cast<std::int64_t>(memory)}});
    if (const auto used = nvml.millijoules(uuid_text(uuid)))
      devices.back().as_object()["millijoules"] = static_cast<std::int64_t>(*used);
  }
  if (result != CUDA_SUCCESS) return {{"error", "the CUDA driver answers with error " + std::to_string(result)}};
  return {{"devices", std::move(devices)}};
}

/// Keeps nothing of the daemon's but the standard streams: a driver that hangs must not keep connections open.
[[noreturn]] void be_the_child(const std::string& library, int out, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) ::signal(signal, SIG_DFL);
  constexpr int kAnswer = STDERR_FILENO + 1;
  if (out != kAnswer && ::dup2(out, kAnswer) != kAnswer) ::_exit(1);
  ::close_range(kAnswer + 1, ~0u, 0);
  ::_exit(write_all(kAnswer, driver_answer(library)) ? 0 : 1);
}

}  // namespace

std::string driver_answer(const std::string& library, const std::string& nvml) {
  // Not through MPS: that would start its server for our user, and would show part of the GPU when a limit is set.
  ::setenv("CUDA_MPS_PIPE_DIRECTORY", "/nonexistent", 1);
  ::unsetenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE");
  return ipc::to_text(ask(library, nvml));
}

Result<std::vector<Gpu>> read_driver_answer(const std::string& text) {
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
    gpu.software = gpu.uuid.starts_with(kSoftwareUuid);
    gpu.sms = static_cast<std::uint32_t>(device.integer("sms", 1, ipc::kUnlimited - 1));
    gpu.exclusive = device.maybe_boolean("exclusive").value_or(false);
    if (const auto used = device.maybe_integer("millijoules", 0)) gpu.millijoules = static_cast<std::uint64_t>(*used);
    gpu.memory_bytes = static_cast<std::uint64_t>(device.integer("memory", 0));
    devices.push_back(std::move(gpu));
  }
  if (!fields.ok()) return fields.error();
  return devices;
}

Result<std::shared_ptr<DriverProbe>> DriverProbe::start(asio::io_context& context, const std::string& library,
                                                        std::chrono::milliseconds timeout, Done done) {
  std::array<int, 2> ends;
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return fail(std::string("pipe: ") + std::strerror(errno));
  ipc::UniqueFd in(ends[0]), out(ends[1]);
  ::fcntl(in.get(), F_SETFL, O_NONBLOCK);
  const pid_t parent = ::getpid(), child = ::fork();
  if (child < 0) return fail(std::string("fork: ") + std::strerror(errno));
  if (child == 0) be_the_child(library, out.get(), parent);
  out.reset();
  std::shared_ptr<DriverProbe> probe(new DriverProbe(context, library, child, std::move(in), std::move(done)));
  if (ipc::UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, child, 0))); pidfd) {
    probe->exit_.assign(pidfd.release());
    when_ended(probe->exit_, probe, [](const auto& self) { self->reap(); });
  }
  probe->begin(timeout);
  return probe;
}

Result<std::shared_ptr<DriverProbe>> DriverProbe::connect(asio::io_context& context, const std::string& socket,
                                                          std::chrono::milliseconds timeout, Done done) {
  const auto problem = [&socket] {
    return fail("cannot ask the CUDA driver at " + socket + ": " + std::strerror(errno));
  };
  ipc::UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return problem();
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (socket.size() >= sizeof address.sun_path) return fail(socket + ": too long for the path of a socket");
  socket.copy(address.sun_path, socket.size());
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return problem();
  std::shared_ptr<DriverProbe> probe(new DriverProbe(context, kDriverLibrary, 0, std::move(fd), std::move(done)));
  probe->begin(timeout);
  return probe;
}

void DriverProbe::begin(std::chrono::milliseconds timeout) {
  timer_.expires_after(timeout);
  timer_.async_wait([probe = shared_from_this()](error_code error) {
    if (!error) probe->finish();
  });
  wait();
}

DriverProbe::DriverProbe(asio::io_context& context, std::string library, pid_t child, ipc::UniqueFd answer, Done done)
    : library_(std::move(library)),
      child_(child),
      answer_(context, answer.release()),
      exit_(context),
      timer_(context),
      done_(std::move(done)) {}

DriverProbe::~DriverProbe() {
  if (child_ == 0) return;
  ::kill(child_, SIGKILL);
  reap();
}

void DriverProbe::cancel() {
  done_ = nullptr;
  finish();
  error_code ignored;
  exit_.close(ignored);  // a child that hangs in the kernel must not keep the loop
}

void DriverProbe::wait() {
  answer_.async_wait(Descriptor::wait_read, [self = shared_from_this()](error_code error) {
    if (error || !self->answer_.is_open()) return;
    if (self->read())
      self->wait();
    else
      self->finish();
  });
}

/// False at the end of the answer.
bool DriverProbe::read() {
  const ReadEnd end = read_pieces(answer_.native_handle(), [this](std::string_view piece) {
    text_ += piece;
    return text_.size() <= kMostAnswer;
  });
  whole_ = end == ReadEnd::end;
  return end == ReadEnd::later;
}

/// The child is no longer needed. It may hang in the kernel, so it is not waited for here.
void DriverProbe::finish() {
  error_code ignored;
  answer_.close(ignored);
  timer_.cancel();
  if (child_ != 0 && !whole_) ::kill(child_, SIGKILL);
  if (!done_) return;
  const Done done = std::exchange(done_, nullptr);
  auto devices = read_driver_answer(whole_ ? text_ : "");
  if (devices) return done(std::move(devices));
  const std::string& why = devices.error().message;  // the dynamic linker's text names the library already
  done(why.starts_with(library_ + ": ") ? fail(why) : fail(library_ + ": " + why));
}

void DriverProbe::reap() {
  if (::waitpid(child_, nullptr, WNOHANG) == child_) child_ = 0;
}

}  // namespace gpuctl::daemon
