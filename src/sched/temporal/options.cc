// Makes policies for jobs from text, and reads their options.
#include <charconv>
#include <cmath>

#include "sched/policy.h"
#include "sched/temporal/makers.h"

namespace gpuctl::sched {

Result<void> check_slice_policy(std::string_view text) {
  const std::string_view name = text.substr(0, text.find(':'));
  const Policy* policy = find_policy(name);
  if (policy == nullptr) return fail("unknown; known: " + policy_names());
  if (policy->divide != nullptr) return fail("\"" + std::string(name) + "\" has no options");
  if (auto made = make_job_policy(text); !made) return made.error();
  return {};
}

Result<std::unique_ptr<JobPolicy>> make_job_policy(std::string_view text, PolicyInputs inputs) {
  const std::string_view name = text.substr(0, text.find(':'));
  const Policy* policy = find_policy(name);
  if (policy == nullptr) return fail("policy \"" + std::string(name) + "\": unknown; one of " + job_policy_names());
  for (std::string_view rest = text.substr(name.size()); !rest.empty();) {
    rest.remove_prefix(1);
    const std::string_view part = rest.substr(0, rest.find(':'));
    rest.remove_prefix(part.size());
    const auto equals = part.find('=');
    inputs.options.emplace_back(part.substr(0, equals),
                                equals == part.npos ? std::string("1") : std::string(part.substr(equals + 1)));
  }
  auto made = policy->make(inputs);
  if (!made) return fail("policy \"" + std::string(name) + "\": " + made.error().message);
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
    if (!used_[i]) return fail("no option \"" + inputs_.options[i].first + "\"");
  return {};
}

}  // namespace gpuctl::sched
