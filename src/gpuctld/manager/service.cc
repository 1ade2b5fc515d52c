#include "gpuctld/manager/service.h"

#include <fcntl.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "base/plural.h"
#include "gpuctld/clock.h"
#include "gpuctld/host/service_manager.h"

namespace gpuctl::daemon {

Service::Service(boost::asio::io_context& context, ipc::UniqueFd listener, ManagerOptions options, Config config,
                 bool software, Manager::Log log)
    : context_(context),
      listener_(std::move(listener)),
      options_(std::move(options)),
      config_(std::move(config)),
      software_(software),
      log_(std::move(log)),
      signals_(context, SIGTERM, SIGINT, SIGHUP),
      watchdog_(context),
      search_(
          context, search_for(software, options_.probe_socket),
          [this](std::vector<Gpu> devices) { found(std::move(devices)); },
          [this](const std::string& why) { failed(why); }) {
  wait_for_signal();
  if (const auto interval = watchdog_interval()) live(*interval / 2);
}

void Service::found(std::vector<Gpu> devices) {
  if (software_) {
    const std::string note = "no NVIDIA GPU is managed, the software GPU is, as was asked for";
    log_(note);
    options_.notes.push_back(note);
  }
  auto manager = Manager::create(context_, std::move(options_), std::move(devices), std::move(config_), log_);
  if (!manager) {
    log_(manager.error().message);
    return stop(1);
  }
  manager_ = std::move(*manager);
  for (const Gpu& gpu : manager_->scheduler().devices())
    log_("managing " + gpu.name + ", " + plural(gpu.sms, "SM") + ", " + gpu.uuid);
  manager_->serve(listener_.release(), without_ ? without_->hand_over() : std::vector<HandedOver>());
  notify("READY=1\nSTATUS=GPUs managed: " + std::to_string(manager_->scheduler().devices().size()));
}

/// The search goes on. Only what is asked for by its name must be there at once.
void Service::failed(const std::string& why) {
  if (software_) {
    log_("no software GPU (Debian: package gpuctl-softgpu): " + why);
    return stop(1);
  }
  if (without_) return without_->set_reason(why);
  log_("no GPU is managed: " + why + "; it is looked for again and again (--software-gpu: use the software GPU)");
  const int listener = ::fcntl(listener_.get(), F_DUPFD_CLOEXEC, 0);
  if (listener < 0) {
    log_(std::string("cannot serve: ") + std::strerror(errno));
    return stop(1);
  }
  without_ = std::make_unique<WithoutGpu>(context_, listener, options_.root_uid, why);
  notify("READY=1\nSTATUS=No GPU is managed: " + why);
}

void Service::wait_for_signal() {
  signals_.async_wait([this](boost::system::error_code error, int signal) {
    if (error) return;
    if (signal == SIGHUP) {
      reload();
      return wait_for_signal();
    }
    notify("STOPPING=1");
    stop(0);
  });
}

void Service::reload() {
  notify("RELOADING=1\nMONOTONIC_USEC=" + std::to_string(now_ns() / 1000));
  const auto problems = manager_ ? manager_->reload() : read_again();
  for (const std::string& problem : problems) log_(problem);
  log_(problems.empty() ? "the configuration was read again" : "the configuration stays as it was");
  notify("READY=1");
}

/// For the manager, when there is one.
std::vector<std::string> Service::read_again() {
  ConfigOutcome outcome = read_config(options_.config_file, options_.config_required);
  for (const std::string& note : outcome.notes) log_(note);
  for (const std::string& note : links_in_joins(outcome.config)) log_(note);
  if (outcome.problems.empty()) config_ = std::move(outcome.config);
  return outcome.problems;
}

void Service::live(std::chrono::microseconds interval) {
  notify("WATCHDOG=1");
  watchdog_.expires_after(interval);
  watchdog_.async_wait([this, interval](boost::system::error_code error) {
    if (!error) live(interval);
  });
}

void Service::stop(int exit_status) {
  exit_status_ = exit_status;
  signals_.cancel();
  watchdog_.cancel();
  search_.stop();
  if (without_) without_->stop();
  if (manager_) manager_->stop();
}

}  // namespace gpuctl::daemon
