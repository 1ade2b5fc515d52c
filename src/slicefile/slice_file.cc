#include "slicefile/slice_file.h"

#include <algorithm>

#include "sched/slices.h"
#include "slicefile/tables.h"

namespace gpuctl::slicefile {

namespace {

/// A basic string of TOML. A unit's name may have backslashes, no text of a setting has control characters.
std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) result.append(c == '\\' || c == '"' ? "\\" : "") += c;
  return result += '"';
}

}  // namespace

SliceFile read_slice_file(const std::string& file) {
  SliceFile result;
  SliceTables reader(file, result.problems, result.slices);
  parse(file, reader, [&](const toml::table& root) {
    for (const auto& [key, value] : root) {
      if (key == "slice")
        reader.tables(key, value);
      else
        reader.problem(key.source(), key.str(), "only [slice] tables are known here; others belong into gpuctl.toml");
    }
  });
  std::ranges::sort(result.slices, sched::PathLess(), &ConfiguredSlice::path);
  return result;
}

std::string table_text(const std::string& path, const SliceSettings& settings) {
  std::string text = "[slice.\"" + path + "\"]\n";
  for (const SliceSetting& setting : kSliceSettings) {
    if (!is_given(setting, settings) || setting.is_per_gpu()) continue;
    text.append(setting.name).append(" = ");
    if (differs_by_gpu(setting, settings))
      text += '"' + amount_value(setting, settings) + '"';
    else if (setting.lifted != nullptr && settings.*setting.lifted)
      text += "\"unlimited\"";
    else if (setting.text != nullptr)
      text += quoted(*(settings.*setting.text));
    else if (setting.kind == SettingKind::group && settings.*setting.number == kNoGroup)
      text += "\"none\"";
    else
      text += std::to_string(*(settings.*setting.number));
    text += '\n';
  }
  return text;
}

}  // namespace gpuctl::slicefile
