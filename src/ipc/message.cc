#include "ipc/message.h"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/one_line.h"
#include "base/utf8.h"
#include "ipc/fields.h"

namespace gpuctl::ipc {
namespace {

namespace json = boost::json;

constexpr std::size_t kMaxDepth = 32;
constexpr std::size_t kMaxQuoted = 100;  ///< bytes of the peer's own words in an error

/// In memory of its size, because a long one may wait for its reader.
std::string framed(const json::object& object) {
  std::string text = to_text(object);
  text.push_back('\0');
  if (text.capacity() > text.size() + text.size() / 8) text.shrink_to_fit();
  return text;
}

/// JSON has no infinity: a number that is read as infinite could not be written again.
bool is_finite(const json::value& value) {
  if (const double* number = value.if_double()) return std::isfinite(*number);
  if (const json::array* array = value.if_array()) return std::all_of(array->begin(), array->end(), is_finite);
  if (const json::object* object = value.if_object())
    return std::all_of(object->begin(), object->end(), [](const auto& member) { return is_finite(member.value()); });
  return true;
}

/// Why the JSON text of a call is not even parsed; empty if it is. Looked at before memory is taken for it, and before
/// keys are put into a table: a peer may choose keys that fall together there.
std::string too_much(std::string_view text) {
  std::array<std::size_t, kMaxDepth> members{};
  std::size_t values = 1, depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\') ++i;
      quoted = c != '"';
      continue;
    }
    quoted = c == '"';
    if (c == ',' || c == ':' || c == '[' || c == '{') ++values;
    if (c == '[' || c == '{') {
      if (depth == kMaxDepth) return {};  // the parser goes no further
      members[depth++] = 0;
    }
    if ((c == ']' || c == '}') && depth > 0) --depth;
    if (c == ':' && depth > 0 && ++members[depth - 1] > kMaxCallMembers)
      return "message holds an object of more than " + std::to_string(kMaxCallMembers) + " members";
    if (values > kMaxCallValues) return "message holds more than " + std::to_string(kMaxCallValues) + " values";
  }
  return {};
}

Result<json::object> parse_object(std::string_view message) {
  boost::system::error_code error;
  json::parse_options options;
  options.max_depth = kMaxDepth;
  json::value value = json::parse({message.data(), message.size()}, error, {}, options);
  if (error) return fail("message is not valid JSON: " + error.message());
  if (!value.is_object()) return fail("message is not a JSON object");
  if (!is_finite(value)) return fail("message holds a number that is too large");
  return std::move(value.get_object());
}

/// The "parameters" of a message, which may be absent.
json::object take_parameters(json::object& message, Fields& fields) {
  json::value* value = message.if_contains("parameters");
  if (value == nullptr || value->is_null()) return {};
  fields.object("parameters");
  return value->is_object() ? std::move(value->get_object()) : json::object();
}

}  // namespace

std::string_view Call::interface() const {
  const std::size_t dot = method.rfind('.');
  return dot == std::string::npos ? std::string_view() : std::string_view(method).substr(0, dot);
}

std::string_view Call::member() const {
  return std::string_view(method).substr(method.rfind('.') + 1);
}

std::string encode(const Call& call) {
  json::object object;
  object["method"] = call.method;
  if (!call.parameters.empty()) object["parameters"] = call.parameters;
  if (call.more) object["more"] = true;
  if (call.oneway) object["oneway"] = true;
  return framed(object);
}

std::string encode(Reply reply) {
  json::object object;
  if (!reply.error.empty()) object["error"] = reply.error;
  object["parameters"] = std::move(reply.parameters);
  if (reply.continues) object["continues"] = true;
  return framed(object);
}

Result<Call> decode_call(std::string_view message) {
  if (std::string why = too_much(message); !why.empty()) return fail(std::move(why));
  Result<json::object> object = parse_object(message);
  if (!object) return object.error();
  Fields fields(*object);
  Call call;
  call.method = fields.text("method");
  call.more = fields.maybe_boolean("more").value_or(false);
  call.oneway = fields.maybe_boolean("oneway").value_or(false);
  if (fields.maybe_boolean("upgrade").value_or(false)) fields.complain("upgrade", "is not supported");
  call.parameters = take_parameters(*object, fields);
  if (!fields.ok()) return fields.error();
  if (call.interface().empty() || call.member().empty())
    return fail("field 'method' must be INTERFACE.METHOD, not '" +
                one_line(to_utf8(call.method.substr(0, kMaxQuoted)), '?') + "'");
  return call;
}

Result<Reply> decode_reply(std::string_view message) {
  Result<json::object> object = parse_object(message);
  if (!object) return object.error();
  Fields fields(*object);
  Reply reply;
  reply.error = fields.maybe_text("error").value_or("");
  reply.continues = fields.maybe_boolean("continues").value_or(false);
  reply.parameters = take_parameters(*object, fields);
  if (!fields.ok()) return fields.error();
  return reply;
}

std::string to_text(const json::object& object) {
  return json::serialize(object);
}

std::string to_utf8(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    if (length == 0) {
      result += "\xef\xbf\xbd";
      text.remove_prefix(1);
    } else {
      result += text.substr(0, length);
      text.remove_prefix(length);
    }
  }
  return result;
}

}  // namespace gpuctl::ipc
