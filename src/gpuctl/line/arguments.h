// What a verb takes on the command line. Declared without CLI11, whose headers take seconds to compile: command_line.cc
// has them.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace gpuctl::cli {

class Argument {
 public:
  explicit Argument(CLI::Option* option) : option_(option) {}
  Argument required();
  /// The name of its value in help: "PATH".
  Argument value(const std::string& name);
  /// After the command line was parsed: whether the argument was there.
  bool given() const;

 private:
  CLI::Option* option_;
};

/// The verb owns the variables. They live as long as its action.
class Arguments {
 public:
  explicit Arguments(CLI::App& app) : app_(app) {}
  /// "--name"; or "NAME", without '=' and ':', for an argument that is known by its place.
  Argument add(const std::string& name, std::string& value, const std::string& help);
  /// One or more.
  Argument add(const std::string& name, std::vector<std::string>& values, const std::string& help);
  Argument add_flag(const std::string& name, bool& value, const std::string& help);
  /// Text at the end of the verb's help.
  void footer(const std::string& text);

 private:
  CLI::App& app_;
};

}  // namespace gpuctl::cli
