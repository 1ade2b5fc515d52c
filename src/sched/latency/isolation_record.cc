#include "sched/latency/isolation_record.h"

#include <algorithm>
#include <array>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <cmath>
#include <map>
#include <utility>

#include "base/utf8.h"

namespace gpuctl::sched {

namespace {

namespace json = boost::json;

std::string_view file_name(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

std::string_view next_word(std::string_view& text) {
  const std::size_t begin = std::min(text.find_first_not_of(' '), text.size());
  const std::size_t end = std::min(text.find(' ', begin), text.size());
  const std::string_view word = text.substr(begin, end - begin);
  text.remove_prefix(end);
  return word;
}

bool runs_others(std::string_view program) {
  constexpr std::array<std::string_view, 6> kSuch{"python", "bash", "sh", "torchrun", "accelerate", "perl"};
  return std::ranges::any_of(kSuch, [&](std::string_view such) {
    return program.starts_with(such) && program.substr(such.size()).find_first_not_of("0123456789.") == program.npos;
  });
}

/// "" is above all.
bool is_below(std::string_view slice, std::string_view above) {
  return above.empty() || (slice.starts_with(above) && (slice.size() == above.size() || slice[above.size()] == '/'));
}

/// Of "a/b/c" and "a": "a/b". Of "a" and "a": that itself.
std::string_view one_further(std::string_view slice, std::string_view above) {
  return slice.substr(0, slice.find('/', above.size() + 1));
}

json::value to_json(const std::optional<MeasuredIsolation>& measured) {
  if (!measured) return nullptr;
  return {{"bursts", measured->bursts},
          {"p99_ns", measured->p99.count()},
          {"others_per_s", measured->others_per_s},
          {"others", measured->others}};
}

/// False if it is malformed.
bool read(const json::object& from, std::string_view name, std::optional<MeasuredIsolation>& measured) {
  const json::value* value = from.if_contains(name);
  if (value == nullptr || value->is_null()) return true;
  const json::object* object = value->if_object();
  if (object == nullptr) return false;
  const auto number = [&](std::string_view field) {
    boost::system::error_code broken;
    const json::value* found = object->if_contains(field);
    const double read = found == nullptr ? -1 : found->to_number<double>(broken);
    return broken || !(read <= 1e18) ? -1 : read;
  };
  const double bursts = number("bursts"), p99 = number("p99_ns"), others = number("others_per_s");
  if (bursts < 0 || p99 < 0 || others < 0) return false;
  measured = {static_cast<std::uint64_t>(bursts), std::chrono::nanoseconds(std::llround(p99)), others,
              static_cast<std::uint64_t>(std::max(0.0, number("others")))};
  return true;
}

}  // namespace

std::string program_of(std::string_view command) {
  std::string name(file_name(next_word(command)));
  if (runs_others(name)) {
    std::string_view word = next_word(command);
    if (word == "-m") name += " -m", word = next_word(command);
    if (!word.empty() && !word.starts_with('-')) name.append(" ").append(file_name(word));
  }
  return std::string(whole_characters(name, IsolationRecord::kMostName));  // JSON with half a one is not read again
}

std::list<IsolationRecord::Known>::iterator IsolationRecord::find(std::string_view slice, std::string_view program) {
  return std::ranges::find_if(known_, [&](const Known& one) { return one.slice == slice && one.name == program; });
}

/// It becomes the first.
IsolationRecord::Known& IsolationRecord::seen(std::string_view slice, std::string_view program) {
  if (const auto found = find(slice, program); found != known_.end()) {
    known_.splice(known_.begin(), known_, found);
  } else {
    if (known_.size() == kMostPrograms) make_room();
    known_.push_front({.slice = std::string(slice), .name = std::string(program), .measured = {}});
  }
  return known_.front();
}

/// From the top down to the slice below which there are most: of that the one goes that was not seen for the longest
/// time. So who owns a slice and makes many below it loses those.
void IsolationRecord::make_room() {
  for (std::string_view above;;) {
    std::map<std::string_view, std::size_t> count;
    for (const Known& known : known_)
      if (is_below(known.slice, above)) ++count[one_further(known.slice, above)];
    const std::size_t most = std::ranges::max_element(count, {}, [](const auto& part) { return part.second; })->second;
    const auto last = std::find_if(known_.rbegin(), known_.rend(), [&](const Known& known) {
      return is_below(known.slice, above) && count[one_further(known.slice, above)] == most;
    });
    if (last->slice == above) {
      known_.erase(std::next(last).base());
      return;
    }
    above = one_further(last->slice, above);
  }
}

void IsolationRecord::started(std::string_view slice, std::string_view program) {
  const auto found = find(slice, program);
  if (found == known_.end()) return;
  found->now.clear();
  found->others = {};
  found->time = {};
  found->learnt = 0;
}

void IsolationRecord::add(std::string_view slice, std::string_view program, bool isolated,
                          const LatencyHistogram& bursts, const Others& others, Nanoseconds passed, Nanoseconds now) {
  if (bursts.count() > 0 && std::exchange(seen(slice, program).isolated, isolated) != isolated) started(slice, program);
  const auto found = find(slice, program);
  if (found == known_.end() || found->isolated != isolated) return;
  Known& known = *found;
  const std::uint64_t who = others.who & ((std::uint64_t{1} << kOthersBits) - 1);
  if (std::exchange(known.others.who, who) != who) started(slice, program), known.others.who = who;
  if (bursts.count() > 0) known.now.add(bursts, false, now);
  known.learnt += bursts.count();
  known.others.launches += others.launches;
  known.time += passed;
  if (known.learnt < kEnough || known.now.count() < kEnough) return;
  known.learnt = 0;
  const MeasuredIsolation found_now{
      .bursts = known.now.count(),
      .p99 = known.now.bursts().percentile(0.99).value_or(Nanoseconds{}),
      .others_per_s = known.others.launches / std::chrono::duration<double>(known.time).count(),
      .others = who};
  (isolated ? known.measured.isolated : known.measured.shared) = found_now;
  changed_ = true;
}

std::vector<IsolationRecord::Program> IsolationRecord::of(std::string_view slice) const {
  std::vector<Program> programs;
  for (const Known& known : known_)
    if (known.slice == slice && (known.measured.shared || known.measured.isolated))
      programs.push_back({known.name, known.measured});
  return programs;
}

void IsolationRecord::keep(const std::function<bool(const std::string& slice)>& exists) {
  changed_ |= std::erase_if(known_, [&](const Known& known) { return !exists(known.slice); }) > 0;
}

json::value IsolationRecord::to_json() const {
  json::array programs;
  for (const Known& known : known_)
    if (known.measured.shared || known.measured.isolated)
      programs.push_back({{"slice", known.slice},
                          {"program", known.name},
                          {"shared", sched::to_json(known.measured.shared)},
                          {"isolated", sched::to_json(known.measured.isolated)}});
  return {{"version", 1}, {"programs", std::move(programs)}};
}

Result<void> IsolationRecord::from_json(const json::value& state) {
  const json::object* object = state.if_object();
  const json::value* programs = object == nullptr ? nullptr : object->if_contains("programs");
  if (programs == nullptr || !programs->is_array()) return fail("no programs");
  std::list<Known> known;
  for (const json::value& value : programs->get_array()) {
    const json::object* program = value.if_object();
    const json::value* slice = program == nullptr ? nullptr : program->if_contains("slice");
    const json::value* name = program == nullptr ? nullptr : program->if_contains("program");
    if (slice == nullptr || !slice->is_string() || name == nullptr || !name->is_string() ||
        name->get_string().size() > kMostName || known.size() == kMostPrograms)
      return fail("a program that cannot be");
    Known& one = known.emplace_back();
    one.slice = slice->get_string();
    one.name = name->get_string();
    if (!read(*program, "shared", one.measured.shared) || !read(*program, "isolated", one.measured.isolated))
      return fail("a measurement that cannot be");
  }
  known_ = std::move(known);
  return {};
}

}  // namespace gpuctl::sched
