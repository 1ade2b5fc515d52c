#include "ipc/stub_map.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
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

Stub* map_pages(int fd) noexcept {
  void* memory = ::mmap(nullptr, kStubBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<Stub*>(memory);
}

}  // namespace

StubMap& StubMap::operator=(StubMap&& other) noexcept {
  std::swap(stub_, other.stub_);
  return *this;
}

StubMap::~StubMap() {
  if (stub_ != nullptr) ::munmap(stub_, kStubBytes);
}

void StubMap::give_back() noexcept {
  if (stub_ != nullptr) ::madvise(stub_, kStubBytes, MADV_REMOVE);
}

Result<StubMap> StubMap::map(int fd) noexcept {
  struct stat info {};
  if (::fstat(fd, &info) != 0) return complaint("fstat", errno);
  if (info.st_size != static_cast<off_t>(kStubBytes)) return complaint("wrong size of the file", 0);
  const int seals = ::fcntl(fd, F_GET_SEALS);
  if (seals < 0 || !(seals & F_SEAL_SHRINK)) return complaint("the file may shrink", 0);
  StubMap map(map_pages(fd));
  if (!map) return complaint("mmap", errno);
  const std::uint32_t devices = load(map->devices);
  if (load(map->magic) != kStubMagic) return complaint("not a stub page (magic)", 0);
  if (load(map->version) != stub_version() || load(map->size) != sizeof(Stub))
    return complaint("made by another version of gpuctld", 0);
  if (devices > kMaxDevices) return complaint("more devices than fit", 0);
  return map;
}

Result<NewStub> NewStub::create(std::uint32_t devices, std::uint32_t client_pid) noexcept {
  if (devices > kMaxDevices) return complaint("more devices than fit", 0);
  NewStub made;
  made.fd.reset(::memfd_create("gpuctl-stub", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!made.fd) return complaint("memfd_create", errno);
  if (::fchmod(made.fd.get(), 0600) != 0) return complaint("fchmod", errno);
  if (::ftruncate(made.fd.get(), kStubBytes) != 0) return complaint("ftruncate", errno);
  if (::fcntl(made.fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    return complaint("sealing", errno);
  made.map = StubMap(map_pages(made.fd.get()));
  if (!made.map) return complaint("mmap", errno);
  Stub& stub = *made.map.get();
  stub.version = stub_version();
  stub.size = sizeof(Stub);
  stub.devices = devices;
  stub.client_pid = client_pid;
  stub.daemon_alive = 1;
  store(stub.magic, kStubMagic);
  return made;
}

int futex_wake(const std::uint32_t& word) noexcept {
  return static_cast<int>(::syscall(SYS_futex, &word, FUTEX_WAKE, kMostWoken, nullptr, nullptr, 0));
}

}  // namespace gpuctl::ipc
