#include "gpuctl/views/resource_slice.h"

#include <algorithm>
#include <array>
#include <boost/json/serialize.hpp>
#include <cstdio>

#include "gpuctl/text/table.h"

namespace gpuctl::cli {
namespace {

using boost::json::array;
using boost::json::object;
using boost::json::value;

// Limits of resource.k8s.io/v1.
constexpr std::size_t kMostDevices = 128;
constexpr std::size_t kMostText = 64;   // bytes of an attribute
constexpr std::size_t kMostLabel = 63;  // of a device's name
constexpr std::int64_t kMiB = 1 << 20;

bool has_slice_below(const ipc::Slice& slice, const std::vector<ipc::Slice>& slices) {
  const std::string begin = slice.path == "/" ? "" : slice.path + '/';
  return std::ranges::any_of(slices, [&](const ipc::Slice& other) {
    return other.path != slice.path && other.path != "/" && other.path.starts_with(begin);
  });
}

/// Eight hexadecimal digits (FNV-1a).
std::string digest(const std::string& text) {
  std::uint32_t hash = 0x811c9dc5;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x01000193;
  std::array<char, 9> digits{};
  std::snprintf(digits.data(), digits.size(), "%08x", hash);
  return digits.data();
}

/// A DNS label that is the device's alone, whatever other slices there are: who has allocated the device knows it by
/// that. "/" is "--"; of a path that cannot be told by what a label takes, there is a digest at the end.
std::string label_of(std::int64_t gpu, const std::string& path) {
  std::string label = "gpu-" + std::to_string(gpu);
  if (path == "/") return label;
  label += '-';
  bool is_all = path.find("--") == path.npos;
  for (std::size_t i = 0; i < path.size(); ++i) {
    const char c = path[i];
    const auto lower = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
    const bool plain = (lower >= 'a' && lower <= 'z') || (lower >= '0' && lower <= '9');
    const bool at_end = i == 0 || i + 1 == path.size() || path[i - 1] == '/' || path[i + 1] == '/';
    is_all = is_all && ((plain && c == lower) || c == '/' || (c == '-' && !at_end));
    label += plain ? std::string(1, lower) : c == '/' ? "--" : "-";
  }
  if (is_all && label.size() <= kMostLabel) return label;
  const std::string end = '-' + digest(path);
  return label.substr(0, kMostLabel - end.size()) + end;
}

/// Of `amount` units each claim takes at least one; one that does not say how many takes all.
object capacity(std::int64_t amount, const std::string& unit) {
  const auto quantity = [&](std::int64_t number) { return std::to_string(number) + unit; };
  object range{{"min", quantity(1)}, {"max", quantity(amount)}};
  // A step must fit between the least and all.
  if (amount > 1) range["step"] = quantity(1);
  return {{"value", quantity(amount)}, {"requestPolicy", object{{"default", quantity(amount)}, {"validRange", range}}}};
}

object text(const std::string& said) {
  return {{"string", printable(said).substr(0, kMostText)}};
}

object number(std::int64_t said) {
  return {{"int", said}};
}

std::int64_t bounded(std::int64_t all, const std::optional<std::int64_t>& effective,
                     const std::optional<std::int64_t>& set) {
  return std::min(all, effective.value_or(set.value_or(all)));
}

object device_object(const ipc::Device& device, const ipc::Slice& slice, std::int64_t reserve, std::int64_t sms,
                     std::int64_t mib) {
  object attributes{{"slice", text(slice.path)},
                    {"gpu", number(device.index)},
                    {"uuid", text(device.uuid)},
                    {"productName", text(device.name)},
                    {"kind", text(device.kind)},
                    {"mode", text(device.mode)},
                    {"reserve", number(slice.path == "/" ? 0 : reserve)},
                    {"priority", number(slice.effective_priority.value_or(slice.priority))}};
  return {{"name", label_of(device.index, slice.path)},
          {"allowMultipleAllocations", true},
          {"attributes", std::move(attributes)},
          {"capacity", object{{"sms", capacity(sms, "")}, {"memory", capacity(mib, "Mi")}}}};
}

void write_yaml(const value& what, std::size_t indent, std::string& out);

/// What follows "key:" or "-".
void write_item(const value& what, std::size_t indent, std::string& out) {
  const bool nested =
      (what.is_object() && !what.get_object().empty()) || (what.is_array() && !what.get_array().empty());
  if (nested) {
    out += '\n';
    write_yaml(what, indent, out);
  } else {
    out += ' ' + boost::json::serialize(what) + '\n';
  }
}

void write_yaml(const value& what, std::size_t indent, std::string& out) {
  const std::string space(indent, ' ');
  if (const object* fields = what.if_object()) {
    for (const auto& [key, field] : *fields) {
      out += space + std::string(key) + ':';
      write_item(field, indent + 2, out);
    }
  } else if (const array* items = what.if_array()) {
    for (const value& item : *items) {
      std::string inner;
      write_item(item, indent + 2, inner);
      // The first line of an object is on that of its dash.
      const std::size_t text = inner.find_first_not_of(" \n");
      out += space + "- " + inner.substr(text);
    }
  }
}

}  // namespace

std::string subdomain_problem(const std::string& name, std::size_t most) {
  if (name.empty() || name.size() > most) return "has to have 1 to " + std::to_string(most) + " characters";
  const auto plain = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  for (std::size_t i = 0; i < name.size(); ++i) {
    const bool ends_word = i == 0 || i + 1 == name.size() || name[i - 1] == '.' || name[i + 1] == '.';
    if (!plain(name[i]) && (ends_word || (name[i] != '-' && name[i] != '.')))
      return "has to be words of a-z, 0-9 and '-' with dots between them";
  }
  return {};
}

array resource_slices(const ResourceSlicePlan& plan, const std::vector<ipc::Device>& devices,
                      const std::vector<ipc::Slice>& slices, std::vector<std::string>& notes) {
  for (const std::string& name : plan.slices)
    if (std::ranges::find(slices, name, &ipc::Slice::path) == slices.end())
      notes.push_back("there is no slice '" + printable(name) + "'");
  array all;
  for (const ipc::Slice& slice : slices) {
    const bool named = std::ranges::find(plan.slices, slice.path) != plan.slices.end();
    if (plan.slices.empty() ? has_slice_below(slice, slices) : !named) continue;
    if (slice.path.size() > kMostText) {
      notes.push_back("slice '" + printable(slice.path) + "' is left out: Kubernetes takes names of " +
                      std::to_string(kMostText) + " bytes");
      continue;
    }
    for (const ipc::Device& device : devices) {
      const auto on = std::ranges::find(slice.on_gpus, device.index, &ipc::SliceOnGpu::device);
      const bool same = on == slice.on_gpus.end();
      if (!same && !on->seen.value_or(true)) continue;
      const std::int64_t reserve = same ? slice.effective_reserve.value_or(slice.reserve) : on->reserve;
      const std::int64_t sms =
          same ? bounded(device.sms, slice.effective_max, slice.max) : bounded(device.sms, on->max, {});
      const std::int64_t memory = same ? bounded(device.memory_bytes, slice.effective_memory_max, slice.memory_max)
                                       : bounded(device.memory_bytes, on->memory_max, {});
      const std::int64_t mib = memory / kMiB;
      if (sms > 0 && mib > 0)
        all.push_back(device_object(device, slice, reserve, sms, mib));
      else
        notes.push_back("slice '" + printable(slice.path) + "' is left out: it has no " + (sms > 0 ? "memory" : "SMs"));
    }
  }
  const std::size_t parts = std::max<std::size_t>((all.size() + kMostDevices - 1) / kMostDevices, 1);
  array made;
  for (std::size_t part = 0; part < parts; ++part) {
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(part * kMostDevices);
    const std::size_t count = std::min(kMostDevices, all.size() - part * kMostDevices);
    made.push_back(object{
        {"apiVersion", "resource.k8s.io/v1"},
        {"kind", "ResourceSlice"},
        {"metadata", object{{"name", plan.node + '-' + plan.driver + (parts > 1 ? '-' + std::to_string(part) : "")}}},
        {"spec", object{{"driver", plan.driver},
                        {"nodeName", plan.node},
                        {"pool", object{{"name", plan.node}, {"generation", 1}, {"resourceSliceCount", parts}}},
                        {"devices", array(begin, begin + static_cast<std::ptrdiff_t>(count))}}}});
  }
  return made;
}

std::string to_yaml(const value& what) {
  std::string out;
  write_yaml(what, 0, out);
  return out;
}

}  // namespace gpuctl::cli
