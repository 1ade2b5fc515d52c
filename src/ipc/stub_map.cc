#include "ipc/stub_map.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <new>
#include <string>

namespace gpuctl::ipc {
namespace {

/// Makes an error inside a noexcept function, where memory may run out; then the error is empty.
Error complaint(const char* what, int error) noexcept {
  try {
    return fail(std::string("stub page: ") + what + (error == 0 ? "" : ": ") +
                (error == 0 ? "" : std::strerror(error)));
  } catch (const std::bad_alloc&) {
    return Error{};
  }
}

#ifndef F_SEAL_FUTURE_WRITE
constexpr int F_SEAL_FUTURE_WRITE = 0x0010;
#endif

Stub* map_pages(int fd, int flags = 0) noexcept {
  void* memory = ::mmap(nullptr, kStubBytes, PROT_READ | PROT_WRITE, MAP_SHARED | flags, fd, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<Stub*>(memory);
}

/// Why a file cannot be a stub page; null: it can.
const char* wrong_file(int fd) noexcept {
  struct stat info {};
  if (::fstat(fd, &info) != 0) return "fstat";
  if (info.st_size != static_cast<off_t>(kStubBytes)) return "wrong size of the file";
  const int seals = ::fcntl(fd, F_GET_SEALS);
  return seals < 0 || !(seals & F_SEAL_SHRINK) ? "the file may shrink" : nullptr;
}

}  // namespace

StubMap& StubMap::operator=(StubMap&& other) noexcept {
  std::swap(stub_, other.stub_);
  return *this;
}

StubMap::~StubMap() {
  if (stub_ != nullptr) ::munmap(stub_, kStubBytes);
}

Result<StubMap> StubMap::map(int fd) noexcept {
  if (const char* wrong = wrong_file(fd)) return complaint(wrong, 0);
  StubMap map(map_pages(fd));
  if (!map) return complaint("mmap", errno);
  if (auto checked = map.check(); !checked) return checked.error();
  return map;
}

Result<StubMap> StubMap::take(int fd) noexcept {
  if (const char* wrong = wrong_file(fd)) return complaint(wrong, 0);
  StubMap map(map_pages(fd, MAP_POPULATE));
  if (!map) return complaint("mmap", errno);
  if (::fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE | F_SEAL_SEAL) != 0) return complaint("sealing", errno);
  return map;
}

Result<void> StubMap::check() const noexcept {
  if (load(stub_->magic) != kStubMagic) return complaint("not a stub page (magic)", 0);
  if (load(stub_->version) != stub_version() || load(stub_->size) != sizeof(Stub))
    return complaint("made by another version of gpuctld", 0);
  if (load(stub_->devices) > kMaxDevices) return complaint("more devices than fit", 0);
  return {};
}

Result<NewStub> NewStub::create() noexcept {
  NewStub made;
  made.fd.reset(::memfd_create("gpuctl-stub", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!made.fd) return complaint("memfd_create", errno);
  if (::fchmod(made.fd.get(), 0600) != 0) return complaint("fchmod", errno);
  if (::ftruncate(made.fd.get(), kStubBytes) != 0) return complaint("ftruncate", errno);
  if (::fcntl(made.fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0) return complaint("sealing", errno);
  made.map = StubMap(map_pages(made.fd.get()));
  if (!made.map) return complaint("mmap", errno);
  return made;
}

Result<NewStub> NewStub::create(std::uint32_t devices, std::uint32_t client_pid) noexcept {
  if (devices > kMaxDevices) return complaint("more devices than fit", 0);
  auto made = create();
  if (made) made->begin(devices, client_pid);
  return made;
}

Result<void> NewStub::can_be_sealed() noexcept {
  const UniqueFd probe(::memfd_create("gpuctl-stub", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!probe) return complaint("memfd_create", errno);
  if (::fcntl(probe.get(), F_ADD_SEALS, F_SEAL_FUTURE_WRITE) == 0) return {};
  return complaint(errno == EINVAL ? "this kernel does not seal what is mapped (Linux 5.1 does)" : "sealing",
                   errno == EINVAL ? 0 : errno);
}

bool NewStub::stays() const noexcept {
  if (::mlock(map.get(), kStubBytes) == 0) return true;
  rlimit most{};
  return ::getrlimit(RLIMIT_MEMLOCK, &most) == 0 && most.rlim_cur != RLIM_INFINITY;
}

bool NewStub::is_sealed() const noexcept {
  constexpr off_t kBlock = 512;  // of st_blocks, whatever the file system
  struct stat info {};
  const int seals = ::fcntl(fd.get(), F_GET_SEALS);
  return seals >= 0 && (seals & F_SEAL_FUTURE_WRITE) != 0 && ::fstat(fd.get(), &info) == 0 &&
         info.st_blocks * kBlock >= static_cast<off_t>(kStubBytes);
}

void NewStub::begin(std::uint32_t devices, std::uint32_t client_pid) noexcept {
  Stub& stub = *map.get();
  stub.version = stub_version();
  stub.size = sizeof(Stub);
  stub.devices = devices;
  stub.client_pid = client_pid;
  stub.daemon_alive = 1;
  store(stub.magic, kStubMagic);
}

int futex_wake(const std::uint32_t& word) noexcept {
  return static_cast<int>(::syscall(SYS_futex, &word, FUTEX_WAKE, kMostWoken, nullptr, nullptr, 0));
}

}  // namespace gpuctl::ipc
