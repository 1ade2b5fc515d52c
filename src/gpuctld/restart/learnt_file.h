// A file of what was learnt.
#pragma once

#include <boost/json/value.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "base/result.h"

namespace gpuctl::daemon {

/// Everything is called on the thread of what is learnt.
class LearntFile {
 public:
  using Log = std::function<void(const std::string&)>;
  /// What is newer is lost when the daemon is killed.
  static constexpr std::chrono::seconds kSaveEvery{5};

  struct Learnt {
    std::string about;  ///< "kernels"
    std::function<boost::json::value()> to_json;
    std::function<Result<void>(const boost::json::value&)> from_json;
    std::function<bool()> take_changed;
  };
  /// `Knowledge` has these three as members, and outlives the object.
  template <class Knowledge>
  static Learnt learnt(std::string about, Knowledge& knowledge) {
    return {std::move(about), [&] { return knowledge.to_json(); },
            [&](const boost::json::value& state) { return knowledge.from_json(state); },
            [&] { return knowledge.take_changed(); }};
  }

  /// `file` empty: nothing is kept.
  LearntFile(Learnt learnt, std::string file, Log log);

  /// Reads the file. One that cannot be used is left alone and logged.
  void load();
  /// Writes what is new, if the last time was kSaveEvery ago.
  void save_when_due(std::uint64_t now_ns);
  /// Writes what is new.
  void save(std::uint64_t now_ns);

 private:
  Learnt learnt_;
  const std::string file_;
  Log log_;
  std::uint64_t saved_ns_ = 0;
};

}  // namespace gpuctl::daemon
