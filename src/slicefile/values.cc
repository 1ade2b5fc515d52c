#include "slicefile/values.h"

#include "base/limit_text.h"
#include "sched/slice.h"
#include "slicefile/join_ids.h"

namespace gpuctl::slicefile {

void Values::problem(const toml::source_region& source, std::string_view field, std::string_view reason) {
  problems_.push_back(where(source) + ": " + std::string(field) + ": " + std::string(reason));
}

std::string Values::where(const toml::source_region& source) const {
  return file_ + ":" + std::to_string(source.begin.line) + ":" + std::to_string(source.begin.column);
}

std::optional<std::int64_t> Values::integer(const std::string& field, const toml::node& node,
                                            std::string_view otherwise) {
  if (const auto value = node.value_exact<std::int64_t>()) return value;
  problem(node.source(), field, otherwise);
  return std::nullopt;
}

std::optional<std::string> Values::text(const std::string& field, const toml::node& node) {
  if (auto value = node.value_exact<std::string>()) return value;
  problem(node.source(), field, "must be a string");
  return std::nullopt;
}

std::optional<std::int64_t> Values::bytes(const std::string& field, const toml::node& node) {
  if (const auto number = node.value_exact<std::int64_t>()) return number;
  const auto size = parse_size(node.value_or(std::string_view()));
  if (!size) problem(node.source(), field, R"(must be bytes, a size such as "16G", or "none")");
  return size;
}

std::optional<std::string> Values::join(const std::string& field, const toml::node& node, bool mandatory) {
  const auto names = text(field, node);
  if (!names) return names;
  std::string reason;
  std::string ids = join_by_ids(*names, reason, mandatory);
  if (reason.empty()) return ids;
  problem(node.source(), field, reason);
  return std::nullopt;
}

void Values::boolean(const std::string& field, const toml::node& node, bool& result) {
  if (const auto value = node.value_exact<bool>())
    result = *value;
  else
    problem(node.source(), field, "must be true or false");
}

std::optional<std::int64_t> Values::user(const std::string& field, const toml::node& node) {
  return id(field, node, user_id);
}

std::optional<std::int64_t> Values::group(const std::string& field, const toml::node& node) {
  return id(field, node, group_id);
}

std::optional<std::int64_t> Values::id(const std::string& field, const toml::node& node,
                                       std::optional<std::int64_t> (*look_up)(const std::string&)) {
  if (const auto number = node.value_exact<std::int64_t>()) {
    if (*number >= 0 && *number < sched::kNobody) return number;
    problem(node.source(), field, "is not an id");
    return std::nullopt;
  }
  const auto name = node.value_exact<std::string>();
  if (!name) return problem(node.source(), field, "must be a name or a number"), std::nullopt;
  const auto found = look_up(*name);
  if (!found) problem(node.source(), field, "no \"" + *name + "\" on this machine");
  return found;
}

}  // namespace gpuctl::slicefile
