#include "gpuctld/config/options.h"

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdlib>
#include <iostream>

#include "ipc/interface.h"

namespace gpuctl::daemon {

namespace {

constexpr std::int64_t kMostStormUs = 60'000'000;

std::string bad_storm(const std::string& text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool number = error == std::errc() && end == text.data() + text.size();
  if (number && value >= 1 && value <= kMostStormUs) return {};
  return "'" + text + "' is not a number of microseconds from 1 to " + std::to_string(kMostStormUs);
}

/// CLI11's complaint, in gpuctl's words.
std::string explain(const CLI::ParseError& error, const CLI::App& app) {
  const std::string text = error.what();
  const std::string option = text.substr(0, text.find(':'));
  const CLI::Option* found = option.starts_with("--") ? app.get_option_no_throw(option) : nullptr;
  if (error.get_name() != "ArgumentMismatch" || found == nullptr) return text;
  // CLI11 2.1 says "At Most 1", later versions "At most 1".
  if (text.find("ost 1 required") != std::string::npos) return option + " is given twice; give it once";
  return option + " needs a value: " + option + ' ' + found->get_type_name();
}

}  // namespace

Options parse_options(int argc, char** argv, int& exit_status) {
  Options options;
  CLI::App app{"Shares NVIDIA GPUs among programs by slices (gpuctld.service(8), gpuctl(1))."};
  app.name("gpuctld");
  app.set_version_flag("--version", "gpuctld " GPUCTL_VERSION);
  std::int64_t storm = 0;
  const auto* socket =
      app.add_option("--socket", options.socket, "Listen at PATH: a private instance, for any user")->type_name("PATH");
  const auto* config =
      app.add_option("--config", options.config,
                     "Read FILE and FILE.d/*.toml, not " GPUCTL_CONFIG_FILE "; a private instance reads none otherwise")
          ->type_name("FILE");
  const auto* state =
      app.add_option("--state", options.state, "Keep the slices in DIR; of a private instance PATH.state otherwise")
          ->type_name("DIR");
  app.add_flag("--software-gpu", options.software_gpu, "Manage the software GPU instead of NVIDIA GPUs");
  app.add_flag("--check-config", options.check_config, "Only read the configuration, and say what is wrong in it");
  app.add_flag("--strict", options.strict,
               "With --check-config: keys that have moved or gone, and [lab], are mistakes too");
  app.add_flag("--probe", options.probe, "Only write what the CUDA driver says of its devices, for --probe-socket");
  app.add_option("--probe-socket", options.probe_socket,
                 "Ask the CUDA driver by connecting to PATH, where gpuctld --probe answers")
      ->type_name("PATH");
  app.add_flag("--look", options.look,
               "Only write which programs use a GPU without gpuctl's library, for --look-socket");
  app.add_option("--look-for", options.look_for, "For tests: with --look, the device that they have open")
      ->type_name("FILE");
  app.add_option(
         "--look-socket", options.look_socket,
         "Look for programs that use a GPU without gpuctl's library by connecting to PATH, where gpuctld --look "
         "answers")
      ->type_name("PATH");
  app.add_flag("--mps-control", options.mps_control,
               "Only have MPS do the command on the standard input, for --mps-control-socket");
  app.add_option("--mps-control-socket", options.mps_control_socket,
                 "Give commands for MPS by connecting to PATH, where gpuctld --mps-control answers")
      ->type_name("PATH");
  app.add_flag("--mps-start", options.mps_start,
               "Only start the MPS that the standard input names, for --mps-start-socket");
  app.add_option("--mps-start-socket", options.mps_start_socket,
                 "Start MPS by connecting to PATH, where gpuctld --mps-start answers")
      ->type_name("PATH");
  app.add_flag("--limit-memory", options.limit_memory,
               "Only have the driver limit the control group that the standard input names, for --limits-socket");
  app.add_option("--limits-socket", options.limits_socket,
                 "Have the driver limit control groups by connecting to PATH, where gpuctld --limit-memory answers")
      ->type_name("PATH");
  app.add_option("--evict-storm", storm,
                 "For tests: replace every grant by a random smaller one each USEC microseconds in the mean")
      ->type_name("USEC")
      ->check(CLI::Validator(bad_storm, ""));
  app.allow_extras();
  exit_status = -1;
  try {
    app.parse(argc, argv);
    if (const std::vector<std::string> extras = app.remaining(); !extras.empty()) {
      const std::string& extra = extras.front();
      const bool is_option = extra.size() > 1 && extra[0] == '-';
      throw CLI::ParseError(is_option ? "unknown option '" + extra.substr(0, extra.find('=')) + "'"
                                      : "unexpected argument '" + extra + "'",
                            CLI::ExitCodes::ExtrasError);
    }
    if (options.strict && !options.check_config)
      throw CLI::ParseError("--strict needs --check-config", CLI::ExitCodes::RequiresError);
    if (options.check_config + options.probe + options.look + options.mps_control + options.mps_start +
            options.limit_memory >
        1)
      throw CLI::ParseError(
          "give one of --check-config, --probe, --look, --mps-control, --mps-start and --limit-memory",
          CLI::ExitCodes::ExcludesError);
  } catch (const CLI::CallForHelp&) {
    std::cout << app.help();
    exit_status = 0;
  } catch (const CLI::CallForVersion&) {
    std::cout << "gpuctld " GPUCTL_VERSION "\n";
    exit_status = 0;
  } catch (const CLI::ParseError& error) {
    std::cerr << "gpuctld: " << explain(error, app) << "; see 'gpuctld --help'\n";
    exit_status = 2;
  }
  options.evict_storm = std::chrono::microseconds(storm);
  options.private_instance = socket->count() != 0;
  options.config_required = config->count() != 0;
  if (!options.private_instance) options.socket = ipc::kDefaultSocket;
  if (!options.private_instance && !options.config_required) options.config = GPUCTL_CONFIG_FILE;
  if (state->count() == 0) {
    const std::size_t slash = std::string(ipc::kDefaultSocket).rfind('/');
    options.state =
        options.private_instance ? options.socket + ".state" : std::string(ipc::kDefaultSocket.substr(0, slash));
  }
  const char* const lasting = std::getenv("STATE_DIRECTORY");
  options.usage = lasting != nullptr && !options.private_instance && state->count() == 0 ? lasting : options.state;
  return options;
}

}  // namespace gpuctl::daemon
