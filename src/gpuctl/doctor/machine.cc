#include "gpuctl/doctor/machine.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/mps_home.h"
#include "base/process_owner.h"
#include "base/regular_file.h"
#include "gpuctl/doctor/child.h"

namespace gpuctl::cli {
namespace {

using Row = std::vector<std::string>;

/// A row for each GPU, with as many cells as there are fields; none if it does not know one of these.
std::vector<Row> query(const std::string& program, const std::vector<std::string>& fields) {
  std::string list;
  for (const std::string& field : fields) list += (list.empty() ? "" : ",") + field;
  const auto said = ask_child({program, "--query-gpu=" + list, "--format=csv,noheader"});
  std::vector<Row> rows;
  if (!said || said->status != 0) return rows;
  std::istringstream lines(said->text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream cells(line);
    Row row(fields.size());
    for (std::string& cell : row)
      if (std::getline(cells, cell, ',')) cell = trimmed(cell);
    rows.push_back(std::move(row));
  }
  return rows;
}

/// "[N/A]" and the like: not known.
std::string told(const std::string& cell) {
  return cell.starts_with('[') ? "" : cell;
}

/// "0x0000000000000004"
std::optional<std::uint64_t> read_bits(const std::string& cell) {
  std::uint64_t value = 0;
  if (!cell.starts_with("0x")) return std::nullopt;
  const auto [end, error] = std::from_chars(cell.data() + 2, cell.data() + cell.size(), value, 16);
  return error == std::errc() && end == cell.data() + cell.size() ? std::optional(value) : std::nullopt;
}

}  // namespace

std::string trimmed(std::string text) {
  const auto blank = [](char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; };
  while (!text.empty() && blank(text.back())) text.pop_back();
  text.erase(text.begin(), std::ranges::find_if_not(text, blank));
  return text;
}

std::optional<std::uint32_t> mps_owner(const std::string& pipe_directory, const std::string& proc) {
  constexpr std::size_t kMostDigits = 32;
  const auto file = read_regular_file(mps_home(pipe_directory) + "/nvidia-cuda-mps-control.pid", kMostDigits);
  std::int32_t pid = 0;
  if (!file || !(std::istringstream(*file) >> pid) || pid <= 0) return std::nullopt;
  std::string name;
  std::getline(std::ifstream(proc + "/" + std::to_string(pid) + "/comm"), name);
  const auto owner = owner_of(pid, proc);
  // The kernel cuts the name after 15 characters.
  return owner && name == "nvidia-cuda-mps" ? std::optional(owner->uid) : std::nullopt;
}

Cgroups cgroups_of(const std::string& root) {
  std::ifstream controllers(root + "/cgroup.controllers");
  std::error_code ignored;
  // Version 1 has a directory for each controller instead, and systemd's own.
  if (!controllers) return {.version = std::filesystem::exists(root + "/systemd", ignored) ? 1 : 0};
  Cgroups found{.version = 2};
  for (std::string name; controllers >> name;) found.dmem |= name == "dmem";
  return found;
}

std::vector<SmiDevice> ask_smi(const std::string& program) {
  std::vector<SmiDevice> devices;
  for (const Row& row : query(program, {"uuid", "compute_mode", "persistence_mode", "name"}))
    devices.push_back({.uuid = row[0], .compute_mode = row[1], .persistence = row[2], .name = row[3]});
  for (const Row& row : query(program, {"uuid", "clocks.sm", "clocks.max.sm", "clocks_event_reasons.active"}))
    if (const auto device = std::ranges::find(devices, row[0], &SmiDevice::uuid); device != devices.end())
      device->clock = told(row[1]), device->most_clock = told(row[2]), device->slowed_by = read_bits(row[3]);
  return devices;
}

}  // namespace gpuctl::cli
