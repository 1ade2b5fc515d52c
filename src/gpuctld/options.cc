#include "gpuctld/options.h"

#include <CLI/CLI.hpp>
#include <iostream>

#include "gpuctld/config.h"
#include "ipc/interface.h"

namespace gpuctl::daemon {

Options parse_options(int argc, char** argv, int& exit_status) {
  Options options;
  CLI::App app{"Shares NVIDIA GPUs among programs by slices (gpuctld.service(8), gpuctl(1))."};
  app.name("gpuctld");
  app.set_version_flag("--version", "gpuctld " GPUCTL_VERSION);
  std::int64_t storm = 0;
  const auto* socket =
      app.add_option("--socket", options.socket, "Listen at PATH: a private instance, for any user")->type_name("PATH");
  const auto* config =
      app.add_option("--config", options.config, "Read FILE and FILE.d/*.toml; a private instance reads none otherwise")
          ->type_name("FILE");
  const auto* state =
      app.add_option("--state", options.state, "Keep the slices in DIR; of a private instance PATH.state otherwise")
          ->type_name("DIR");
  app.add_flag("--software-gpu", options.software_gpu, "Manage the software GPU even if there is an NVIDIA GPU");
  app.add_option("--evict-storm", storm,
                 "For tests: replace every grant by a random smaller one each USEC microseconds in the mean")
      ->type_name("USEC")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{60'000'000}));
  exit_status = -1;
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    std::cout << app.help();
    exit_status = 0;
  } catch (const CLI::CallForVersion&) {
    std::cout << "gpuctld " GPUCTL_VERSION "\n";
    exit_status = 0;
  } catch (const CLI::ParseError& error) {
    std::cerr << "gpuctld: " << error.what() << " (try gpuctld --help)\n";
    exit_status = 2;
  }
  options.evict_storm = std::chrono::microseconds(storm);
  options.private_instance = socket->count() != 0;
  options.config_required = config->count() != 0;
  if (!options.private_instance) options.socket = ipc::kDefaultSocket;
  if (!options.private_instance && !options.config_required) options.config = kDefaultConfigFile;
  if (state->count() == 0) {
    const std::size_t slash = std::string(ipc::kDefaultSocket).rfind('/');
    options.state =
        options.private_instance ? options.socket + ".state" : std::string(ipc::kDefaultSocket.substr(0, slash));
  }
  return options;
}

}  // namespace gpuctl::daemon
