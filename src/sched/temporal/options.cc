// Makes policies for jobs from text, and reads their options.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>

#include "sched/policy.h"
#include "sched/temporal/makers.h"

namespace gpuctl::sched {

namespace {

constexpr char kNoOption[] = "no option ";

std::string quoted(std::string_view name) {
  return '"' + std::string(name) + '"';
}

std::vector<std::pair<std::string, std::string>> options_in(std::string_view text) {
  std::vector<std::pair<std::string, std::string>> options;
  for (auto colon = text.find(':'); colon != text.npos; colon = text.find(':')) {
    text.remove_prefix(colon + 1);
    const std::string_view part = text.substr(0, text.find(':'));
    const auto equals = part.find('=');
    options.emplace_back(part.substr(0, equals),
                         equals == part.npos ? std::string("1") : std::string(part.substr(equals + 1)));
  }
  return options;
}

/// The names in a policy's row, where each has its default: "a, b" of "a=1 b=2".
std::string names_of_options(const Policy& policy) {
  std::string names;
  for (std::string_view rest = policy.options; !rest.empty();) {
    const std::string_view option = rest.substr(0, rest.find(' '));
    names += (names.empty() ? "" : ", ") + std::string(option.substr(0, option.find('=')));
    rest.remove_prefix(std::min(rest.size(), option.size() + 1));
  }
  return names.empty() ? "none" : names;
}

Result<std::unique_ptr<JobPolicy>> make(const Policy& policy, std::string_view text, PolicyInputs inputs) {
  std::ranges::move(options_in(text), std::back_inserter(inputs.options));
  auto made = policy.make(inputs);
  if (!made && made.error().message.starts_with(kNoOption))
    return fail(made.error().message + "; it has " + names_of_options(policy));
  return made;
}

/// Of "name:option=value".
std::string_view name_in(std::string_view text) {
  return text.substr(0, text.find(':'));
}

}  // namespace

Result<void> check_slice_policy(std::string_view text) {
  const std::string_view name = name_in(text);
  const Policy* policy = find_policy(name);
  if (policy == nullptr) return fail("unknown; known: " + policy_names());
  if (policy->divide != nullptr) return fail(quoted(name) + " has no options");
  if (const auto made = make(*policy, text, {}); !made) return fail(quoted(name) + ": " + made.error().message);
  return {};
}

Result<std::unique_ptr<JobPolicy>> make_job_policy(std::string_view text, PolicyInputs inputs) {
  const std::string_view name = name_in(text);
  const std::string where = "policy " + quoted(name) + ": ";
  const Policy* policy = find_policy(name);
  if (policy == nullptr) return fail(where + "unknown; one of " + policy_names());
  auto made = make(*policy, text, std::move(inputs));
  if (!made) return fail(where + made.error().message);
  return made;
}

double OptionReader::number(std::string_view name, double fallback, double least, double most) {
  double value = fallback;
  for (std::size_t i = 0; i < inputs_.options.size(); ++i) {
    const auto& [key, text] = inputs_.options[i];
    if (key != name) continue;
    used_[i] = true;
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool good = problem == std::errc{} && end == text.data() + text.size() && value >= least && value <= most;
    if (!good && error_.empty()) {
      auto plain = [](double v) {
        std::string s = std::to_string(v);
        s.erase(s.find_last_not_of('0') + 1);
        if (s.back() == '.') s.pop_back();
        return s;
      };
      error_ =
          "option " + key + " must be a number from " + plain(least) + " to " + plain(most) + ", not \"" + text + "\"";
    }
    if (!good) value = fallback;
  }
  return value;
}

double OptionReader::whole(std::string_view name, double fallback, double least, double most) {
  const double value = number(name, fallback, least, most);
  if (value == std::floor(value)) return value;
  complain("option " + std::string(name) + " must be a whole number");
  return fallback;
}

void OptionReader::complain(std::string error) {
  if (error_.empty()) error_ = std::move(error);
}

Time OptionReader::milliseconds(std::string_view name, double fallback, double least, double most) {
  return Time{std::llround(number(name, fallback, least, most) * 1e6)};
}

Result<void> OptionReader::finish() {
  if (!error_.empty()) return fail(error_);
  for (std::size_t i = 0; i < used_.size(); ++i)
    if (!used_[i]) return fail(kNoOption + ("\"" + inputs_.options[i].first + "\""));
  return {};
}

}  // namespace gpuctl::sched
