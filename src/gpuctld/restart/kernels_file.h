// The file of what was learnt about kernels.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "gpuctld/jobs/kernel_knowledge.h"

namespace gpuctl::daemon {

/// Everything is called on the thread of the knowledge.
class KernelsFile {
 public:
  using Log = std::function<void(const std::string&)>;
  /// What is newer is lost when the daemon is killed.
  static constexpr std::chrono::seconds kSaveEvery{5};

  /// `knowledge` outlives this object. `file` empty: nothing is kept.
  KernelsFile(KernelKnowledge& knowledge, std::string file, Log log);

  /// Reads the file. One that cannot be used is left alone and logged.
  void load();
  /// Writes what is new, if the last time was kSaveEvery ago.
  void save_when_due(std::uint64_t now_ns);
  /// Writes what is new.
  void save(std::uint64_t now_ns);

 private:
  KernelKnowledge& knowledge_;
  const std::string file_;
  Log log_;
  std::uint64_t saved_ns_ = 0;
};

}  // namespace gpuctl::daemon
