// Runs a program in a slice of its own, and passes on what the daemon records of its launches meanwhile.
#pragma once

#include <boost/json/object.hpp>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "gpuctl/line/daemon.h"
#include "gpuctl/line/verb.h"

namespace gpuctl::cli {

/// A slice that exists as long as this object. One thread.
class SliceForProfile {
 public:
  /// Makes a slice below `parent`, under a policy for jobs, so that launches are reported and in a form of which SMs
  /// can be taken.
  static Outcome<SliceForProfile> make(const Context& context, const std::string& parent);
  SliceForProfile(SliceForProfile&& other) noexcept;
  SliceForProfile& operator=(SliceForProfile&&) = delete;
  ~SliceForProfile();

  const std::string& path() const { return path_; }
  /// From now on the slice has at most so many SMs.
  Outcome<void> limit(std::int64_t sms);

 private:
  SliceForProfile(const Context& context, std::string path) : context_(&context), path_(std::move(path)) {}
  const Context* context_;
  std::string path_;
};

/// SIGINT and SIGTERM end the program that runs, and no further one starts.
void end_profile_on_signals();

/// Runs the program `context.command` in `slice` to its end and until no program is left there. `take` gets each launch
/// in the slice that the daemon recorded. `lost` grows by the launches that the daemon could not keep. `where` ends the
/// sentence when the program fails: "with 8 SMs".
Outcome<void> run_recorded(const Context& context, const std::string& slice, const std::string& where,
                           const std::function<void(const ipc::Launch&)>& take, std::int64_t& lost);

}  // namespace gpuctl::cli
