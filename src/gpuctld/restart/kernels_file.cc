#include "gpuctld/restart/kernels_file.h"

#include <unistd.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <utility>

#include "gpuctld/config/state_file.h"
#include "gpuctld/config/trusted_file.h"

namespace gpuctl::daemon {

namespace {

/// Of the file: many times what KernelKnowledge keeps.
constexpr std::size_t kMostKernelBytes = 256u << 20;

}  // namespace

KernelsFile::KernelsFile(KernelKnowledge& knowledge, std::string file, Log log)
    : knowledge_(knowledge), file_(std::move(file)), log_(std::move(log)) {}

void KernelsFile::load() {
  if (file_.empty()) return;
  const auto text = read_trusted_file(file_, Writers::owner, ::geteuid(), kMostKernelBytes);
  if (!text) return log_(text.error().message + "; kernels are learnt anew");
  if (!*text) return;
  boost::system::error_code broken;
  const boost::json::value value = boost::json::parse(**text, broken);
  const auto loaded = broken ? Result<void>(fail("not JSON")) : knowledge_.from_json(value);
  if (!loaded) log_(file_ + ": " + loaded.error().message + "; kernels are learnt anew");
}

void KernelsFile::save_when_due(std::uint64_t now_ns) {
  if (std::chrono::nanoseconds(now_ns - saved_ns_) >= kSaveEvery) save(now_ns);
}

void KernelsFile::save(std::uint64_t now_ns) {
  saved_ns_ = now_ns;
  if (file_.empty() || !knowledge_.take_changed()) return;
  const auto saved = replace_file(file_, boost::json::serialize(knowledge_.to_json()) + "\n");
  if (!saved) log_("what was learnt about kernels would not survive a restart: " + saved.error().message);
}

}  // namespace gpuctl::daemon
