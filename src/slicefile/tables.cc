#include "slicefile/tables.h"

#include <algorithm>

#include "base/former_mode.h"
#include "base/limit_text.h"
#include "base/regular_file.h"
#include "sched/apply_change.h"
#include "sched/policy.h"

namespace gpuctl::slicefile {
namespace {

constexpr std::size_t kMostBytes = 16u << 20;  // of a file; a thousand slices take a hundredth

/// Those that have a key. What single GPUs have is written with the amount of every GPU.
std::vector<SliceSetting> with_keys() {
  std::vector<SliceSetting> settings(kSliceSettings.begin(), kSliceSettings.end());
  std::erase_if(settings, [](const SliceSetting& setting) { return setting.is_per_gpu(); });
  return settings;
}

}  // namespace

void SliceTables::tables(const toml::key& key, const toml::node& node) {
  each(key, node, [this](auto& k, auto& v) { table(k, v); });
}

void SliceTables::table(const toml::key& key, const toml::node& node) {
  const std::string path(key.str());
  const std::string prefix = "slice.\"" + path + "\"";
  const toml::table* table = node.as_table();
  if (table == nullptr) return problem(node.source(), prefix, "must be a table: [" + prefix + "]");
  auto slice = std::ranges::find(slices_, path, &ConfiguredSlice::path);
  if (slice == slices_.end()) slice = slices_.insert(slices_.end(), ConfiguredSlice{path, {}, {}, {}});
  slice->where = where(key.source());
  for (const auto& [k, v] : *table) {
    setting(prefix, k, v, slice->change);
    slice->where_of[std::string(k.str())] = where(v.source());
  }
  check(prefix, *slice);
}

void SliceTables::setting(const std::string& prefix, const toml::key& key, const toml::node& node,
                          sched::SliceChange& change) {
  const std::string field = prefix + "." + std::string(key.str());
  const auto setting = std::ranges::find(kSliceSettings, std::string_view(key.str()), &SliceSetting::name);
  if (setting == kSliceSettings.end() || setting->is_per_gpu())
    return problem(key.source(), field, "unknown key; known: " + names_of(with_keys()));
  drop(*setting, change);
  const std::string_view words = node.value_or(std::string_view());
  if (setting->per_gpu != nullptr && is_per_gpu(words)) {
    if (!give_amount(*setting, words, change))
      problem(node.source(), field, "must be " + std::string(per_gpu_form(setting->amount_of())));
    return;
  }
  if (setting->kind == SettingKind::join)
    change.*setting->text = join(field, node);
  else if (setting->text != nullptr)
    change.*setting->text = text(field, node);
  else if (setting->lifted != nullptr && lifts_limit(words))
    change.*setting->lifted = true;
  else if (setting->kind == SettingKind::bytes && lifts_limit(words))
    change.*setting->number = 0;
  else if (setting->kind == SettingKind::group && words == "none")
    change.*setting->number = kNoGroup;
  else
    change.*setting->number = setting->kind == SettingKind::user    ? user(field, node)
                              : setting->kind == SettingKind::group ? group(field, node)
                              : setting->kind == SettingKind::bytes ? bytes(field, node)
                              : setting->lifted != nullptr
                                  ? integer(field, node, R"(must be a whole number, or "none")")
                                  : integer(field, node);
}

/// Finds what is wrong whatever the rest of the tree and the GPU are.
void SliceTables::check(const std::string& prefix, const ConfiguredSlice& slice) {
  sched::Slice fresh;
  fresh.policy = &sched::policies().front();
  if (slice.path == "/") fresh.reserve = {};
  sched::SliceChange change = slice.change;
  if (former_) replace_former_mode(change);
  const auto result = sched::apply_change(fresh, change);
  if (result) return;
  const auto found = slice.where_of.find(result.error().field);
  problems_.push_back((found == slice.where_of.end() ? slice.where : found->second) + ": " + prefix + "." +
                      result.error().message());
}

void parse(const std::string& file, Values& problems, const std::function<void(const toml::table&)>& read) {
  const auto content = read_regular_file(file, kMostBytes);
  if (!content) return problems.problem(content.error().message);
  try {
    read(toml::parse(*content, file));
  } catch (const toml::parse_error& error) {
    std::string reason(error.description());
    std::ranges::replace(reason, '\n', ' ');
    problems.problem(error.source(), "syntax", reason);
  }
}

}  // namespace gpuctl::slicefile
