#include "gpuslice-nvcc/architectures.h"

#include <algorithm>
#include <string_view>

namespace gpuctl::nvcc {
namespace {

constexpr std::string_view kVirtual = "compute_";
constexpr std::string_view kReal = "sm_";
constexpr std::string_view kLinkTime = "lto_";

/// The names in "sm_80", "sm_80,compute_80" or "[sm_80,compute_80]", also in quotes that a shell left there.
std::vector<std::string> split_list(std::string_view text) {
  std::vector<std::string> names(1);
  for (const char c : text) {
    if (c == ',')
      names.emplace_back();
    else if (std::string_view("[]\"' ").find(c) == std::string_view::npos)
      names.back() += c;
  }
  std::erase(names, "");
  return names;
}

/// "compute_90a" for "sm_90a" and for itself; empty for any other name.
std::string virtual_of(const std::string& architecture) {
  if (architecture.starts_with(kVirtual)) return architecture;
  if (architecture.starts_with(kReal)) return std::string(kVirtual) + architecture.substr(kReal.size());
  return "";
}

bool holds(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// Whether all of it is code for the device linker, which keeps no PTX, whatever the options.
bool only_link_time(const std::vector<std::string>& code) {
  return !code.empty() && std::all_of(code.begin(), code.end(), [](const auto& c) { return c.starts_with(kLinkTime); });
}

}  // namespace

void Architectures::gpu_code(const std::string& value) {
  for (std::string& name : split_list(value)) code_.push_back(std::move(name));
}

void Architectures::generate_code(const std::string& value) {
  Generated generated;
  bool in_code = false;
  for (const std::string& part : split_list(value)) {
    const std::size_t at = part.find('=');
    if (at != part.npos) in_code = part.substr(0, at) == "code";
    const std::string name = at == part.npos ? part : part.substr(at + 1);
    if (in_code)
      generated.code.push_back(name);
    else
      generated.architecture = name;
  }
  generated_.push_back(std::move(generated));
}

std::vector<std::string> Architectures::without_ptx(
    const std::function<std::vector<std::string>(const std::string& architecture)>& resolve) const {
  std::vector<std::string> used, kept;
  const auto add = [&](const std::string& from, const std::vector<std::string>& code) {
    if (!from.empty() && !only_link_time(code)) used.push_back(from);
    for (const std::string& name : code)
      if (name.starts_with(kVirtual)) kept.push_back(name);
  };
  const std::string plain = virtual_of(architecture_);
  if (!plain.empty()) {
    // Without -code, nvcc keeps the PTX of this one architecture.
    add(plain, code_.empty() ? std::vector<std::string>{plain} : code_);
  } else if (!architecture_.empty()) {
    for (const std::string& name : resolve(architecture_)) add(name, {});
  }
  for (const Generated& generated : generated_) add(virtual_of(generated.architecture), generated.code);

  std::vector<std::string> missing;
  for (const std::string& name : used)
    if (!holds(kept, name) && !holds(missing, name)) missing.push_back(name);
  return missing;
}

}  // namespace gpuctl::nvcc
