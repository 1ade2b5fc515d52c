// Strict reading of JSON objects: every field must exist with the right type. The first one that does not is named.
#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace gpuctl::ipc {

/// Reads one object. Each getter returns the field, or a default if it is missing or of another type. The first problem
/// is kept and is asked for once at the end (ok(), error()). Field paths read "settings.reserve", "kernels[3].name".
/// Refers to the object, which must outlive the Fields. Not thread-safe.
///
///     Fields fields(call.parameters);
///     const std::string path = fields.text("path");
///     Fields nested = fields.object("settings");
///     SliceSettings settings;
///     read(nested, settings);
///     if (!fields.ok()) return fields.error();
class Fields {
 public:
  explicit Fields(const boost::json::object& object);

  std::string text(std::string_view name);
  std::int64_t integer(std::string_view name, std::int64_t least = std::numeric_limits<std::int64_t>::min(),
                       std::int64_t greatest = std::numeric_limits<std::int64_t>::max());
  /// Accepts integers too.
  double number(std::string_view name);
  bool boolean(std::string_view name);
  std::vector<std::string> texts(std::string_view name);
  std::vector<std::int64_t> integers(std::string_view name);
  Fields object(std::string_view name);
  std::vector<Fields> objects(std::string_view name);

  /// Nullable fields: absent and null are the same.
  std::optional<std::string> maybe_text(std::string_view name);
  std::optional<std::int64_t> maybe_integer(std::string_view name,
                                            std::int64_t least = std::numeric_limits<std::int64_t>::min(),
                                            std::int64_t greatest = std::numeric_limits<std::int64_t>::max());
  std::optional<bool> maybe_boolean(std::string_view name);
  /// Empty if absent or null.
  std::vector<std::int64_t> maybe_integers(std::string_view name, std::int64_t least, std::int64_t greatest);

  /// Whether the field is there and not null.
  bool has(std::string_view name);

  /// A field of this object that no getter asked for becomes a problem. For calls; replies may gain fields.
  void refuse_unknown();

  /// Records a problem that the caller found; kept only if it is the first.
  void complain(std::string_view name, std::string reason);

  bool ok() const { return problem_->field.empty(); }
  /// The path of the field at fault; empty when ok().
  const std::string& field() const { return problem_->field; }
  /// What is wrong with it, without its name: "is missing", "must be an integer, not a string".
  const std::string& reason() const { return problem_->reason; }
  /// "field 'settings.reserve' must be an integer, not a string"
  Error error() const;

 private:
  struct Problem {
    std::string field;
    std::string reason;
  };
  Fields(const boost::json::object& object, std::string prefix, std::shared_ptr<Problem> problem);
  const boost::json::value* find(std::string_view name);
  const boost::json::value* need(std::string_view name);
  const boost::json::array* need_array(std::string_view name);
  void wrong_type(std::string_view name, std::string_view wanted, const boost::json::value& found);

  const boost::json::object* object_;
  std::string prefix_;
  std::shared_ptr<Problem> problem_;  ///< shared by the Fields of nested objects
  std::vector<std::string> asked_;
};

}  // namespace gpuctl::ipc
