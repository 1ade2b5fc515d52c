#include "ptx/syntax.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace gpuctl::ptx {
namespace {

constexpr std::array<std::string_view, 11> kSpaces = {
    ".reg",    ".sreg", ".const",       ".global",          ".local",       ".param",
    ".shared", ".tex",  ".shared::cta", ".shared::cluster", ".param::entry"};

std::uint64_t to_number(std::string_view text) {
  std::uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

/// Digits after `prefix`, and nothing else.
bool is_numbered(std::string_view name, std::string_view prefix) {
  if (!name.starts_with(prefix) || name.size() == prefix.size()) return false;
  name.remove_prefix(prefix.size());
  return std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

std::uint32_t type_bytes(std::string_view type) {
  struct Row {
    std::string_view name;
    std::uint32_t bytes;
  };
  static constexpr Row kRows[] = {
      {"b8", 1},   {"u8", 1},    {"s8", 1},     {"e4m3", 1},   {"e5m2", 1},   {"b16", 2}, {"u16", 2},
      {"s16", 2},  {"f16", 2},   {"bf16", 2},   {"b32", 4},    {"u32", 4},    {"s32", 4}, {"f32", 4},
      {"tf32", 4}, {"f16x2", 4}, {"bf16x2", 4}, {"e4m3x2", 2}, {"e5m2x2", 2}, {"b64", 8}, {"u64", 8},
      {"s64", 8},  {"f64", 8},   {"f32x2", 8},  {"b128", 16},
  };
  for (const Row& row : kRows) {
    if (row.name == type) return row.bytes;
  }
  return 0;
}

std::optional<std::uint64_t> variable_bytes(const Variable& variable, const Declarator& name) {
  std::uint64_t bytes = std::uint64_t{type_bytes(variable.type)} * variable.vector;
  for (std::size_t i = 0; i < name.dims.size(); ++i) {
    const auto& dim = name.dims[i];
    if (dim) {
      bytes *= *dim;
    } else if (i == 0 && name.init && name.init->kind == Initializer::Kind::kList) {
      bytes *= name.init->items.size();
    } else {
      return std::nullopt;
    }
  }
  return bytes;
}

std::uint32_t variable_align(const Variable& variable) {
  return variable.align != 0 ? variable.align : std::max(1u, type_bytes(variable.type) * variable.vector);
}

void decode_specifiers(Variable& variable) {
  bool pointee = false;
  const auto& specifiers = variable.specifiers;
  for (std::size_t i = 0; i < specifiers.size(); ++i) {
    const std::string& word = specifiers[i];
    if (word == ".ptr") {
      pointee = true;
    } else if (word == ".align") {
      if (!pointee && i + 1 < specifiers.size())
        variable.align = static_cast<std::uint32_t>(to_number(specifiers[i + 1]));
    } else if (word == ".extern") {
      variable.is_extern = true;
    } else if (word == ".v2" || word == ".v4" || word == ".v8") {
      variable.vector = static_cast<std::uint32_t>(word[2] - '0');
    } else if (std::find(kSpaces.begin(), kSpaces.end(), word) != kSpaces.end()) {
      if (!pointee && variable.space.empty()) variable.space = word.substr(1);
    } else if (!pointee && word.size() > 1 && word[0] == '.' &&
               (type_bytes(std::string_view(word).substr(1)) != 0 || word == ".pred" || word == ".texref" ||
                word == ".samplerref" || word == ".surfref")) {
      variable.type = word.substr(1);
    }
  }
}

bool is_special_register(std::string_view name) {
  static constexpr std::string_view kNames[] = {"%tid",
                                                "%ntid",
                                                "%laneid",
                                                "%warpid",
                                                "%nwarpid",
                                                "%ctaid",
                                                "%nctaid",
                                                "%smid",
                                                "%nsmid",
                                                "%gridid",
                                                "%is_explicit_cluster",
                                                "%clusterid",
                                                "%nclusterid",
                                                "%cluster_ctaid",
                                                "%cluster_nctaid",
                                                "%cluster_ctarank",
                                                "%cluster_nctarank",
                                                "%lanemask_eq",
                                                "%lanemask_le",
                                                "%lanemask_lt",
                                                "%lanemask_ge",
                                                "%lanemask_gt",
                                                "%clock",
                                                "%clock_hi",
                                                "%clock64",
                                                "%globaltimer",
                                                "%globaltimer_lo",
                                                "%globaltimer_hi",
                                                "%reserved_smem_offset_begin",
                                                "%reserved_smem_offset_end",
                                                "%reserved_smem_offset_cap",
                                                "%total_smem_size",
                                                "%aggr_smem_size",
                                                "%dynamic_smem_size",
                                                "%current_graph_exec",
                                                "WARP_SZ"};
  for (const std::string_view known : kNames) {
    if (known == name) return true;
  }
  if (is_numbered(name, "%envreg") || is_numbered(name, "%pm") || is_numbered(name, "%reserved_smem_offset_"))
    return true;
  return name.ends_with("_64") && is_numbered(name.substr(0, name.size() - 3), "%pm");
}

}  // namespace gpuctl::ptx
