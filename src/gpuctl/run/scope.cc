#include "gpuctl/run/scope.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <random>

namespace gpuctl::cli {

namespace {

std::vector<std::string> tool_words(const ScopePlan& plan) {
  std::vector<std::string> words{"systemd-run", "--scope", "--quiet", "--collect", "--no-ask-password"};
  if (plan.of_user) words.emplace_back("--user");
  return words;
}

}  // namespace

std::vector<std::string> scope_trial(const ScopePlan& plan) {
  std::vector<std::string> words = tool_words(plan);
  words.insert(words.end(), {"--unit=" + scope_name(), "--", plan.self, "--version"});
  return words;
}

std::vector<std::string> scope_command(const ScopePlan& plan) {
  std::vector<std::string> words = tool_words(plan);
  if (plan.may_expand) words.emplace_back("--expand-environment=no");
  words.insert(words.end(), {"--unit=" + plan.unit, "--", plan.self, "--socket", plan.socket, "run"});
  if (plan.slice) words.insert(words.end(), {"--slice", *plan.slice});
  if (plan.quiet) words.emplace_back("--quiet");
  words.emplace_back("--");
  words.insert(words.end(), plan.command.begin(), plan.command.end());
  return words;
}

std::string scope_name() {
  char digits[9];
  std::snprintf(digits, sizeof digits, "%08x", std::random_device()());
  return "gpuctl-run-" + std::to_string(::getpid()) + '-' + digits;
}

std::string scope_obstacle(bool of_user, const std::string& runtime, const std::string& booted) {
  std::error_code ignored;
  if (!of_user) return std::filesystem::exists(booted, ignored) ? "" : "systemd does not run here";
  if (runtime.empty()) return "this user's systemd is not known: XDG_RUNTIME_DIR is not set";
  const std::string socket = runtime + "/systemd/private";
  return std::filesystem::exists(socket, ignored) ? "" : "this user's systemd does not run: there is no " + socket;
}

bool has_variable(const std::vector<std::string>& command) {
  return std::ranges::any_of(command, [](const std::string& word) { return word.find('$') != word.npos; });
}

bool may_expand(std::string_view version) {
  constexpr std::string_view kBegin = "systemd ";
  constexpr int kFirst = 254;
  int number = 0;
  if (!version.starts_with(kBegin)) return false;
  std::from_chars(version.data() + kBegin.size(), version.data() + version.size(), number);
  return number >= kFirst;
}

}  // namespace gpuctl::cli
