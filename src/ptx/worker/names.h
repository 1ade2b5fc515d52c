// The values of the @WORDS in the worker's text: parameters, offsets, numbers, and pieces of text used several times.
#pragma once

#include <string>
#include <string_view>

namespace gpuctl::ptx::pass {

class WorkerNames {
 public:
  /// `args`: the name of the LaunchArgs parameter.
  explicit WorkerNames(std::string args) : args_(std::move(args)) {}

  /// The text with all words replaced. An unknown word stays, and makes the text fail to parse.
  std::string expand(std::string_view text) const;

 private:
  std::string word(std::string_view name) const;

  std::string args_;
};

}  // namespace gpuctl::ptx::pass
