// gpuslice-compile: the compile helper. libgpuslice starts it with one descriptor for each job (compile_job.h), from 3
// on, and the number of jobs as its argument. The helper makes the forms of each job's kernels and keeps them in the
// user's cache directory for the next start. It also hands them to the program that asked, if that still exists.
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>

#include "gpuslice-compile/make_forms.h"
#include "libgpuslice/image/cache_directory.h"
#include "libgpuslice/image/compile_job.h"
#include "libgpuslice/image/forms.h"

namespace {

using namespace gpuslice;

constexpr int kFirstDescriptor = 3;
/// A tenth of the processor time of an ordinary process.
constexpr int kNice = 10;
/// In all. A helper that uses more processor time is stuck.
constexpr rlim_t kMostSeconds = 1800;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

/// Other helpers may have the same work. The second one waits for its turn and finds the forms made.
void run(CompileJob& job) {
  const gpuctl::Result<CompileRequest> request = job.request();
  if (!request) return;
  const CacheDirectory& cache = CacheDirectory::of_user();
  const CacheDirectory::Turn turn = cache.take_turn(request->key);
  std::optional<Forms> forms = find_forms(request->key, cache);
  if (!forms) {
    forms = gpuctl::compile::make_forms(*request, variable("GPUSLICE_COMPILER"));
    keep_forms(request->key, *forms, cache);
  }
  job.answer(*forms);
}

}  // namespace

int main(int count, char** arguments) try {
  sigset_t none;
  sigemptyset(&none);
  pthread_sigmask(SIG_SETMASK, &none, nullptr);
  setpriority(PRIO_PROCESS, 0, std::min(getpriority(PRIO_PROCESS, 0) + kNice, 19));
  const rlimit most{kMostSeconds, kMostSeconds};
  setrlimit(RLIMIT_CPU, &most);
  const int jobs = count == 2 ? std::atoi(arguments[1]) : 0;
  if (jobs <= 0) {
    std::fputs("gpuslice-compile: libgpuslice starts this program; it does nothing by itself\n", stderr);
    return 2;
  }
  for (int i = 0; i < jobs; ++i) {
    gpuctl::Result<CompileJob> job = CompileJob::open(kFirstDescriptor + i);
    if (job) run(*job);
  }
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "gpuslice-compile: %s\n", error.what());
  return 1;
}
