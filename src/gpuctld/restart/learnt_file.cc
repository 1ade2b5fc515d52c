#include "gpuctld/restart/learnt_file.h"

#include <unistd.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <utility>

#include "gpuctld/config/state_file.h"
#include "gpuctld/config/trusted_file.h"

namespace gpuctl::daemon {

namespace {

/// Of the file: many times what is kept.
constexpr std::size_t kMostLearntBytes = 256u << 20;

}  // namespace

LearntFile::LearntFile(Learnt learnt, std::string file, Log log)
    : learnt_(std::move(learnt)), file_(std::move(file)), log_(std::move(log)) {}

void LearntFile::load() {
  if (file_.empty()) return;
  const std::string anew = "; " + learnt_.about + " are learnt anew";
  const auto text = read_trusted_file(file_, Writers::owner, ::geteuid(), kMostLearntBytes);
  if (!text) return log_(text.error().message + anew);
  if (!*text) return;
  boost::system::error_code broken;
  const boost::json::value value = boost::json::parse(**text, broken);
  const auto loaded = broken ? Result<void>(fail("not JSON")) : learnt_.from_json(value);
  if (!loaded) log_(file_ + ": " + loaded.error().message + anew);
}

void LearntFile::save_when_due(std::uint64_t now_ns) {
  if (std::chrono::nanoseconds(now_ns - saved_ns_) >= kSaveEvery) save(now_ns);
}

void LearntFile::save(std::uint64_t now_ns) {
  saved_ns_ = now_ns;
  if (file_.empty() || !learnt_.take_changed()) return;
  const auto saved = replace_file(file_, boost::json::serialize(learnt_.to_json()) + "\n");
  if (!saved) log_("what was learnt about " + learnt_.about + " would not survive a restart: " + saved.error().message);
}

}  // namespace gpuctl::daemon
