#include "ipc/fields.h"

#include <algorithm>
#include <utility>

#include "base/one_line.h"

namespace gpuctl::ipc {
namespace {

namespace json = boost::json;

/// The kind of a value, with its article, for "must be …, not a string".
std::string_view describe(const json::value& value) {
  switch (value.kind()) {
    case json::kind::null:
      return "null";
    case json::kind::bool_:
      return "a boolean";
    case json::kind::int64:
      return "an integer";
    case json::kind::uint64:
      return "an integer of more than 63 bits";
    case json::kind::double_:
      return "a fraction";
    case json::kind::string:
      return "a string";
    case json::kind::array:
      return "an array";
    case json::kind::object:
      return "an object";
  }
  return "something else";
}

/// Stands in for a missing object, so that readers need no special case. Never destroyed, because readers may run while
/// an application exits.
const json::object& empty_object() {
  static const json::object& object = *new json::object;
  return object;
}

std::string indexed(std::string_view name, std::size_t i) {
  return std::string(name) + '[' + std::to_string(i) + ']';
}

std::string_view view(const json::string& string) {
  return {string.data(), string.size()};
}

}  // namespace

Fields::Fields(const json::object& object) : Fields(object, {}, std::make_shared<Problem>()) {}

Fields::Fields(const json::object& object, std::string prefix, std::shared_ptr<Problem> problem)
    : object_(&object), prefix_(std::move(prefix)), problem_(std::move(problem)) {}

void Fields::complain(std::string_view name, std::string reason) {
  if (ok()) *problem_ = {prefix_ + std::string(name), std::move(reason)};
}

void Fields::wrong_type(std::string_view name, std::string_view wanted, const json::value& found) {
  complain(name, "must be " + std::string(wanted) + ", not " + std::string(describe(found)));
}

Error Fields::error() const {
  // The name of an unknown field can be anything.
  return fail("field '" + one_line(problem_->field, '?') + "' " + problem_->reason);
}

const json::value* Fields::find(std::string_view name) {
  asked_.emplace_back(name);
  const json::value* value = object_->if_contains({name.data(), name.size()});
  return value == nullptr || value->is_null() ? nullptr : value;
}

const json::value* Fields::need(std::string_view name) {
  const json::value* value = find(name);
  if (value == nullptr) complain(name, object_->contains({name.data(), name.size()}) ? "is null" : "is missing");
  return value;
}

const json::array* Fields::need_array(std::string_view name) {
  const json::value* value = need(name);
  if (value == nullptr) return nullptr;
  if (!value->is_array()) wrong_type(name, "an array", *value);
  return value->if_array();
}

bool Fields::has(std::string_view name) {
  return find(name) != nullptr;
}

std::optional<std::string> Fields::maybe_text(std::string_view name) {
  const json::value* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (const json::string* string = value->if_string()) return std::string(view(*string));
  wrong_type(name, "a string", *value);
  return std::nullopt;
}

std::optional<std::int64_t> Fields::maybe_integer(std::string_view name, std::int64_t least, std::int64_t greatest) {
  const json::value* value = find(name);
  if (value == nullptr) return std::nullopt;
  const std::int64_t* integer = value->if_int64();
  if (integer == nullptr) {
    wrong_type(name, "an integer", *value);
    return std::nullopt;
  }
  if (*integer < least) {
    complain(name, "is " + std::to_string(*integer) + " and must be at least " + std::to_string(least));
    return std::nullopt;
  }
  if (*integer > greatest) {
    complain(name, "is " + std::to_string(*integer) + " and must be at most " + std::to_string(greatest));
    return std::nullopt;
  }
  return *integer;
}

std::optional<bool> Fields::maybe_boolean(std::string_view name) {
  const json::value* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (const bool* boolean = value->if_bool()) return *boolean;
  wrong_type(name, "a boolean", *value);
  return std::nullopt;
}

std::vector<std::int64_t> Fields::maybe_integers(std::string_view name, std::int64_t least, std::int64_t greatest) {
  if (find(name) == nullptr) return {};
  std::vector<std::int64_t> list = integers(name);
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (list[i] >= least && list[i] <= greatest) continue;
    complain(indexed(name, i), "is " + std::to_string(list[i]) + " and must be " + std::to_string(least) + " to " +
                                   std::to_string(greatest));
    return {};
  }
  return list;
}

std::string Fields::text(std::string_view name) {
  return need(name) == nullptr ? std::string() : maybe_text(name).value_or("");
}

std::int64_t Fields::integer(std::string_view name, std::int64_t least, std::int64_t greatest) {
  return need(name) == nullptr ? 0 : maybe_integer(name, least, greatest).value_or(0);
}

bool Fields::boolean(std::string_view name) {
  return need(name) != nullptr && maybe_boolean(name).value_or(false);
}

double Fields::number(std::string_view name) {
  const json::value* value = need(name);
  if (value == nullptr) return 0;
  if (const double* fraction = value->if_double()) return *fraction;
  if (const std::int64_t* integer = value->if_int64()) return static_cast<double>(*integer);
  if (const std::uint64_t* integer = value->if_uint64()) return static_cast<double>(*integer);
  wrong_type(name, "a number", *value);
  return 0;
}

std::vector<std::string> Fields::texts(std::string_view name) {
  std::vector<std::string> list;
  const json::array* array = need_array(name);
  if (array == nullptr) return list;
  for (const json::value& item : *array) {
    if (const json::string* string = item.if_string()) {
      list.emplace_back(view(*string));
    } else {
      wrong_type(indexed(name, list.size()), "a string", item);
      return {};
    }
  }
  return list;
}

std::vector<std::int64_t> Fields::integers(std::string_view name) {
  std::vector<std::int64_t> list;
  const json::array* array = need_array(name);
  if (array == nullptr) return list;
  for (const json::value& item : *array) {
    if (const std::int64_t* integer = item.if_int64()) {
      list.push_back(*integer);
    } else {
      wrong_type(indexed(name, list.size()), "an integer", item);
      return {};
    }
  }
  return list;
}

Fields Fields::object(std::string_view name) {
  const json::value* value = need(name);
  const json::object* object = value == nullptr ? nullptr : value->if_object();
  if (value != nullptr && object == nullptr) wrong_type(name, "an object", *value);
  return Fields(object == nullptr ? empty_object() : *object, prefix_ + std::string(name) + '.', problem_);
}

std::vector<Fields> Fields::objects(std::string_view name) {
  std::vector<Fields> list;
  const json::array* array = need_array(name);
  if (array == nullptr) return list;
  for (const json::value& item : *array) {
    const std::string place = indexed(name, list.size());
    const json::object* object = item.if_object();
    if (object == nullptr) {
      wrong_type(place, "an object", item);
      return {};
    }
    list.push_back(Fields(*object, prefix_ + place + '.', problem_));
  }
  return list;
}

void Fields::refuse_unknown() {
  for (const json::key_value_pair& field : *object_) {
    const std::string_view key(field.key().data(), field.key().size());
    if (std::find(asked_.begin(), asked_.end(), key) == asked_.end()) return complain(key, "is not known here");
  }
}

}  // namespace gpuctl::ipc
