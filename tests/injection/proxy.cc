// A libcuda.so.1 that stands in front of the real one, INJECT_DRIVER (a path), and lets one of its functions fail.
//
//   INJECT_FUNCTION=cuStreamQuery   the function
//   INJECT_ERROR=719                what it answers instead of being called
//   INJECT_AFTER=20                 from its 20th call on (1)
//   INJECT_COUNT=1                  so many times (without end)
//   INJECT_ALL=1                    whoever calls; else only calls that return into libgpuslice.so are counted and fail
//   INJECT_OWN_THREADS=1            only in threads that are not the process's first: in a program with one thread, the
//                                   library's
//   INJECT_AT_EXIT=1                each of these calls answers only when the driver's exit handler has run, and the
//                                   process ends only when the threads of these calls have ended
//   INJECT_CALLS=FILE               where counts are kept: a Row for each exported function, of all processes together
//
// Calls come here through trampolines_*.S, which know nothing of signatures.
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <vector>

extern "C" {
#define X(number, name) void name();
#include "functions.h"
#undef X
}

namespace {

using Function = void (*)();

struct Exported {
  const char* name;
  Function trampoline;
};

constexpr Exported kExported[] = {
#define X(number, name) {#name, &name},
#include "functions.h"
#undef X
};
constexpr std::size_t kCount = std::size(kExported);

/// injection_test.py reads these.
struct Row {
  char name[64];
  std::atomic<std::uint64_t> calls, own, injected;  ///< own: those of threads that are not the first of their process
};
static_assert(sizeof(Row) == 88);

[[noreturn]] void give_up(const char* what, const char* which) {
  std::fprintf(stderr, "injection: %s: %s\n", what, which);
  std::abort();
}

/// The C library's: libgpuslice is in front of it with one that leads back here by way of its wrappers.
void* next_dlsym(void* handle, const char* name) {
  using Dlsym = void* (*)(void*, const char*);
  static const Dlsym found = [] {
    for (const char* version : {"GLIBC_2.34", "GLIBC_2.2.5"}) {
      if (void* one = dlvsym(RTLD_NEXT, "dlsym", version)) return reinterpret_cast<Dlsym>(one);
    }
    give_up("no dlsym in the C library", "");
  }();
  return found(handle, name);
}

std::uint64_t number(const char* variable, std::uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

struct Range {
  std::uintptr_t begin = 0, end = 0;
};

/// Where libgpuslice.so lies.
Range library_range() {
  Range range;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* found) {
        if (!std::string_view(info->dlpi_name).ends_with("/libgpuslice.so")) return 0;
        auto& out = *static_cast<Range*>(found);
        out.begin = info->dlpi_addr;
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const ElfW(Phdr)& part = info->dlpi_phdr[i];
          if (part.p_type == PT_LOAD)
            out.end = std::max<std::uintptr_t>(out.end, info->dlpi_addr + part.p_vaddr + part.p_memsz);
        }
        return 1;
      },
      &range);
  return range;
}

Row* open_rows() {
  const char* path = std::getenv("INJECT_CALLS");
  const int file = path ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;
  if (path && (file < 0 || ftruncate(file, kCount * sizeof(Row)) != 0)) give_up("cannot write", path);
  void* memory = mmap(nullptr, kCount * sizeof(Row), PROT_READ | PROT_WRITE,
                      path ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS, file, 0);
  if (memory == MAP_FAILED) give_up("no memory for counts", "");
  if (file >= 0) close(file);
  return static_cast<Row*>(memory);
}

/// Calls that last until the driver's exit handler has run.
class CallsAtExit {
 public:
  /// Before the driver registers its exit handler.
  void begin() {
    std::atexit([] { instance().end(); });
  }

  static CallsAtExit& instance() {
    static auto* const only = new CallsAtExit;  // never destroyed: threads call on while the process ends
    return *only;
  }

  void wait() {
    {
      const std::lock_guard lock(mutex_);
      threads_.push_back(gettid());
    }
    ended_.wait(false);
  }

 private:
  void end() {
    std::vector<pid_t> threads;
    {
      const std::lock_guard lock(mutex_);
      threads = threads_;
    }
    ended_.store(true);
    ended_.notify_all();
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    for (const pid_t thread : threads) {
      const std::string directory = "/proc/self/task/" + std::to_string(thread);
      while (access(directory.c_str(), F_OK) == 0) {
        if (std::chrono::steady_clock::now() > until) give_up("a thread does not end", directory.c_str());
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    }
  }

  std::atomic<bool> ended_{false};
  std::mutex mutex_;
  std::vector<pid_t> threads_;
};

extern "C" int get_proc_address(const char* symbol, void** function, int version, std::uint64_t flags);
extern "C" int get_proc_address_v2(const char* symbol, void** function, int version, std::uint64_t flags, void* status);

class Proxy {
 public:
  Proxy() : rows_(open_rows()), real_(kCount), library_(library_range()) {
    const char* path = std::getenv("INJECT_DRIVER");
    void* driver = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : nullptr;
    if (!driver) give_up("cannot open INJECT_DRIVER", path ? dlerror() : "it is not set");
    const char* wanted = std::getenv("INJECT_FUNCTION");
    for (std::size_t i = 0; i < kCount; ++i) {
      const Exported& one = kExported[i];
      std::strncpy(rows_[i].name, one.name, sizeof rows_[i].name - 1);
      real_[i] = next_dlsym(driver, one.name);
      if (!real_[i]) give_up("not in this driver", one.name);
      by_address_.emplace(real_[i], reinterpret_cast<void*>(one.trampoline));
      if (wanted && std::strcmp(wanted, one.name) == 0) failing_ = i;
      if (std::strcmp(one.name, "cuGetProcAddress") == 0)
        replace(i, real_get_, reinterpret_cast<void*>(&get_proc_address));
      if (std::strcmp(one.name, "cuGetProcAddress_v2") == 0)
        replace(i, real_get_v2_, reinterpret_cast<void*>(&get_proc_address_v2));
    }
    if (wanted && failing_ == kCount) give_up("INJECT_FUNCTION is not exported", wanted);
    if (at_exit_) CallsAtExit::instance().begin();
  }

  /// Whether this call fails.
  bool fails(std::size_t which, const void* caller) {
    const auto address = reinterpret_cast<std::uintptr_t>(caller);
    if (!all_ && (address < library_.begin || address >= library_.end)) return false;
    const bool own = gettid() != getpid();
    const std::uint64_t call = rows_[which].calls.fetch_add(1, std::memory_order_relaxed) + 1;
    if (own) rows_[which].own.fetch_add(1, std::memory_order_relaxed);
    if (which != failing_ || (own_threads_ && !own) || call < after_ || call - after_ >= count_) return false;
    rows_[which].injected.fetch_add(1, std::memory_order_relaxed);
    if (at_exit_) CallsAtExit::instance().wait();
    return true;
  }

  std::uint64_t error() const { return error_; }
  void* real(std::size_t which) const { return real_[which]; }
  auto real_get() const { return reinterpret_cast<decltype(&get_proc_address)>(real_get_); }
  auto real_get_v2() const { return reinterpret_cast<decltype(&get_proc_address_v2)>(real_get_v2_); }

  /// The proxy's function for one of the driver; what it does not export stays as it is.
  void* trampoline(void* function) const {
    const auto known = by_address_.find(function);
    return known != by_address_.end() ? known->second : function;
  }

 private:
  void replace(std::size_t which, void*& kept, void* by) {
    kept = real_[which];
    real_[which] = by;
  }

  Row* rows_;
  std::vector<void*> real_;
  void *real_get_ = nullptr, *real_get_v2_ = nullptr;
  std::unordered_map<void*, void*> by_address_;
  Range library_;
  std::size_t failing_ = kCount;
  const std::uint64_t error_ = number("INJECT_ERROR", 999), after_ = number("INJECT_AFTER", 1),
                      count_ = number("INJECT_COUNT", UINT64_MAX);
  const bool all_ = number("INJECT_ALL", 0) != 0, own_threads_ = number("INJECT_OWN_THREADS", 0) != 0,
             at_exit_ = number("INJECT_AT_EXIT", 0) != 0;
};

Proxy& proxy() {
  static auto* const only = new Proxy;  // never destroyed: threads call on while the process ends
  return *only;
}

extern "C" {

int get_proc_address(const char* symbol, void** function, int version, std::uint64_t flags) {
  const int result = proxy().real_get()(symbol, function, version, flags);
  if (result == 0 && function) *function = proxy().trampoline(*function);
  return result;
}

int get_proc_address_v2(const char* symbol, void** function, int version, std::uint64_t flags, void* status) {
  const int result = proxy().real_get_v2()(symbol, function, version, flags, status);
  if (result == 0 && function) *function = proxy().trampoline(*function);
  return result;
}
}

}  // namespace

struct Decision {
  void* target;  ///< null: return the error
  std::uint64_t error;
};

extern "C" __attribute__((visibility("hidden"))) Decision injection_decide(std::uint32_t which, const void* caller) {
  Proxy& all = proxy();
  if (all.fails(which, caller)) return {nullptr, all.error()};
  return {all.real(which), 0};
}
