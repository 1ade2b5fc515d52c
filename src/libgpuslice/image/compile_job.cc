#include "libgpuslice/image/compile_job.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include "libgpuslice/image/packed.h"

namespace gpuslice {

using gpuctl::fail;
using gpuctl::Result;
using gpuctl::ipc::UniqueFd;

namespace {

constexpr std::uint64_t kJobMagic = 0x31626f6a63707567;  // "gupcjob1"
/// Room for an answer: this much, plus so much for each byte of the request. Only what is written takes memory.
constexpr std::size_t kRoomBytes = std::size_t{16} << 20;
constexpr std::size_t kRoomPerByte = 32;

}  // namespace

/// Stands before the request, which the answer follows.
struct CompileJob::Header {
  std::uint64_t magic;
  std::uint64_t bytes;  ///< of the whole memory
  std::uint64_t request_bytes;
  std::uint64_t answer_bytes;
  std::uint32_t answered;  ///< 1: the answer is complete

  const char* request() const { return reinterpret_cast<const char*>(this + 1); }
  char* answer() { return reinterpret_cast<char*>(this + 1) + request_bytes; }
  std::size_t room() const { return bytes - sizeof(Header) - request_bytes; }
};

void CompileJob::Unmap::operator()(Header* header) const {
  munmap(header, bytes);
}

Result<CompileJob> CompileJob::create(const CompileRequest& request) {
  Packer packer;
  for (const std::uint64_t part : {request.key.first, request.key.second, request.key.length}) packer.number(part);
  packer.number(request.sm);
  packer.number(static_cast<std::uint64_t>(request.max_registers));
  packer.number(request.by_driver);
  packer.text(request.linker);
  packer.text(request.ptx);
  const std::size_t bytes = sizeof(Header) + packer.bytes.size() * (1 + kRoomPerByte) + kRoomBytes;
  UniqueFd descriptor(memfd_create("gpuslice-compile", MFD_CLOEXEC));
  if (!descriptor || ftruncate(descriptor.get(), static_cast<off_t>(bytes)) != 0)
    return fail("no memory to share: " + std::string(std::strerror(errno)));
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, descriptor.get(), 0);
  if (memory == MAP_FAILED) return fail("no memory to share: " + std::string(std::strerror(errno)));
  auto* header = new (memory) Header{
      .magic = kJobMagic, .bytes = bytes, .request_bytes = packer.bytes.size(), .answer_bytes = 0, .answered = 0};
  std::memcpy(reinterpret_cast<char*>(header + 1), packer.bytes.data(), packer.bytes.size());
  return CompileJob(std::move(descriptor), header, bytes);
}

Result<CompileJob> CompileJob::open(int descriptor) {
  struct stat about;
  if (fstat(descriptor, &about) != 0 || static_cast<std::size_t>(about.st_size) < sizeof(Header)) return fail("no job");
  const auto bytes = static_cast<std::size_t>(about.st_size);
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, descriptor, 0);
  if (memory == MAP_FAILED) return fail("cannot map the job: " + std::string(std::strerror(errno)));
  CompileJob job(UniqueFd(), static_cast<Header*>(memory), bytes);
  const Header& header = *job.header_;
  if (header.magic != kJobMagic || header.bytes != bytes || header.request_bytes > bytes - sizeof(Header))
    return fail("not a job");
  return job;
}

Result<CompileRequest> CompileJob::request() const {
  Unpacker unpacker{{header_->request(), header_->request_bytes}};
  CompileRequest request;
  request.key.first = unpacker.number();
  request.key.second = unpacker.number();
  request.key.length = unpacker.number();
  request.sm = static_cast<unsigned>(unpacker.number());
  request.max_registers = static_cast<int>(unpacker.number());
  request.by_driver = unpacker.number() != 0;
  request.linker = unpacker.text();
  request.ptx = unpacker.text();
  if (!unpacker.whole) return fail("the job is damaged");
  return request;
}

void CompileJob::answer(const Forms& forms) {
  std::string bytes = pack(forms);
  if (bytes.size() > header_->room())
    bytes = pack({.code = {}, .kernels = {}, .reason = "its machine code is too long"});
  if (bytes.size() > header_->room()) return;
  std::memcpy(header_->answer(), bytes.data(), bytes.size());
  header_->answer_bytes = bytes.size();
  std::atomic_ref(header_->answered).store(1, std::memory_order_release);
}

bool CompileJob::answered() const {
  return std::atomic_ref(header_->answered).load(std::memory_order_acquire) != 0;
}

std::optional<Forms> CompileJob::take_answer() const {
  if (!answered() || header_->answer_bytes > header_->room()) return std::nullopt;
  return unpack({header_->answer(), header_->answer_bytes});
}

}  // namespace gpuslice
