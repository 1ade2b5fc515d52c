#include "gpuctl/line/arguments.h"

#include <CLI/CLI.hpp>

namespace gpuctl::cli {

Argument Argument::required() {
  option_->required();
  return *this;
}

Argument Argument::value(const std::string& name) {
  option_->type_name(name);
  return *this;
}

bool Argument::given() const {
  return option_->count() != 0;
}

Argument Arguments::add(const std::string& name, std::string& value, const std::string& help) {
  return Argument(app_.add_option(name, value, help));
}

Argument Arguments::add(const std::string& name, std::vector<std::string>& values, const std::string& help) {
  return Argument(app_.add_option(name, values, help));
}

Argument Arguments::add_flag(const std::string& name, bool& value, const std::string& help) {
  return Argument(app_.add_flag(name, value, help));
}

void Arguments::footer(const std::string& text) {
  app_.footer(text);
}

}  // namespace gpuctl::cli
