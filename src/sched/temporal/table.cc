// The table of temporal policies, and how their options are read. Names and help everywhere come from here.
#include <array>
#include <charconv>
#include <cmath>

#include "sched/policy.h"
#include "sched/temporal/makers.h"

namespace gpuctl::sched {

namespace {
constexpr std::array kRows{
    JobPolicyRow{"fcfs", "first come, first served to completion: what the hardware does by itself", "", make_fcfs},
    JobPolicyRow{"hpf", "highest priority first, shortest remaining time inside a priority (FLEP)",
                 "spatial=0 protect_ms=0", make_hpf},
    JobPolicyRow{"ffs", "weighted round robin with bounded preemption overhead (FLEP)", "max_overhead=0.1", make_ffs},
    JobPolicyRow{"piv", "highest priority first, each to completion unless a higher one comes (EffiSha)",
                 "protect_ms=0", make_piv},
    JobPolicyRow{"dprr", "round robin with priorities that rise while waiting (EffiSha)", "", make_dprr},
    JobPolicyRow{"sjf", "shortest job first", "protect_ms=0", make_sjf},
    JobPolicyRow{"srt", "shortest remaining time first", "protect_ms=0", make_srt},
    JobPolicyRow{"rr", "round robin", "quantum_ms=1", make_rr},
    JobPolicyRow{"cfs", "equal parts of an epoch, the longest waiting first", "epoch_ms=4", make_cfs},
    JobPolicyRow{"frs", "the most slowed down first, until slowdowns are equal (FRS)", "quantum_ms=1", make_frs},
    JobPolicyRow{"smith", "least sum of a power of the slowdowns: responsive and fair", "power=6 quantum_ms=1",
                 make_smith},
    JobPolicyRow{"sim", "side by side by time curves, so that all end early (SiM)", "refine_ms=10 floor=0.25",
                 make_sim},
    JobPolicyRow{"share", "side by side: reserves first, the rest by weight up to max and demand (SMGuard)", "",
                 make_share},
};
}  // namespace

std::span<const JobPolicyRow> job_policies() {
  return kRows;
}

const JobPolicyRow* find_job_policy(std::string_view name) {
  for (const JobPolicyRow& row : kRows)
    if (row.name == name) return &row;
  return nullptr;
}

bool for_slices(const JobPolicyRow& row) {
  return row.name != "share";
}

Result<void> check_slice_policy(std::string_view text) {
  const std::string_view name = text.substr(0, text.find(':'));
  if (find_policy(name) != nullptr) return fail("\"" + std::string(name) + "\" has no options");
  const JobPolicyRow* row = find_job_policy(name);
  if (row == nullptr || !for_slices(*row)) {
    std::string known = policy_names();
    for (const JobPolicyRow& r : kRows)
      if (for_slices(r)) known.append(", ").append(r.name);
    return fail("unknown; known: " + known);
  }
  if (auto made = make_job_policy(text); !made) return made.error();
  return {};
}

Result<std::unique_ptr<JobPolicy>> make_job_policy(std::string_view text, PolicyInputs inputs) {
  const std::string_view name = text.substr(0, text.find(':'));
  const JobPolicyRow* row = find_job_policy(name);
  if (row == nullptr) {
    std::string known;
    for (const JobPolicyRow& r : kRows) known.append(known.empty() ? "" : ", ").append(r.name);
    return fail("policy \"" + std::string(name) + "\": unknown; one of " + known);
  }
  for (std::string_view rest = text.substr(name.size()); !rest.empty();) {
    rest.remove_prefix(1);
    const std::string_view part = rest.substr(0, rest.find(':'));
    rest.remove_prefix(part.size());
    const auto equals = part.find('=');
    inputs.options.emplace_back(part.substr(0, equals),
                                equals == part.npos ? std::string("1") : std::string(part.substr(equals + 1)));
  }
  auto made = row->make(inputs);
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
