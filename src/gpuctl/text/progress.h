// How far long work is, for a person who waits at a terminal.
#pragma once

#include <iosfwd>
#include <string>

namespace gpuctl::cli {

/// Whether `err`, of the Context, is std::cerr and a person sees it.
bool is_watched(const std::ostream& err);

/// One line of the standard error output, which each step replaces and the end removes. Where that is no terminal
/// nothing is written.
class Progress {
 public:
  explicit Progress(std::ostream& err) : Progress(err, is_watched(err)) {}
  Progress(std::ostream& err, bool terminal) : err_(err), terminal_(terminal) {}
  ~Progress() { say({}); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void say(const std::string& line);

 private:
  std::ostream& err_;
  bool terminal_;
  std::string said_;
};

}  // namespace gpuctl::cli
