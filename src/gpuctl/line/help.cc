#include "gpuctl/line/help.h"

#include <CLI/CLI.hpp>

namespace gpuctl::cli {

HelpFormatter::HelpFormatter() {
  column_width(34);
  label("SUBCOMMAND", "VERB");
}

std::string HelpFormatter::make_usage(const CLI::App* app, std::string name) const {
  std::string usage = "Usage: " + name;  // gpuctl, or gpuctl VERB
  if (app->get_parent() == nullptr) return usage + " [OPTIONS] VERB [ARGUMENTS...]\n";
  for (const CLI::Option* option : app->get_options())
    if (option->get_required() && !option->get_positional())
      usage += ' ' + option->get_name() + ' ' + option->get_type_name();
  usage += " [OPTIONS]";
  for (const CLI::Option* option : app->get_options())
    if (option->get_positional()) usage += ' ' + option->get_name(true) + (option->get_expected_max() > 1 ? "..." : "");
  return usage + '\n';
}

std::string HelpFormatter::make_option_opts(const CLI::Option* option) const {
  if (option->get_positional()) return option->get_expected_max() > 1 ? "..." : "";
  return option->get_type_size() == 0 ? "" : ' ' + option->get_type_name();
}

}  // namespace gpuctl::cli
