// Varlink messages: a call and its replies, to and from JSON text.
#pragma once

#include <boost/json/object.hpp>
#include <string>
#include <string_view>

#include "base/result.h"

namespace gpuctl::ipc {

struct Call {
  std::string method;  ///< "io.gpuctl.CreateSlice"
  boost::json::object parameters;
  bool more = false;    ///< several replies are wanted
  bool oneway = false;  ///< no reply is wanted

  /// "io.gpuctl" of "io.gpuctl.CreateSlice"; empty when there is no dot.
  std::string_view interface() const;
  /// "CreateSlice" of "io.gpuctl.CreateSlice".
  std::string_view member() const;
};

struct Reply {
  boost::json::object parameters;
  bool continues = false;  ///< more replies to the same call follow
  std::string error;       ///< "io.gpuctl.NoSuchSlice"; empty: success
};

/// The message with its terminating NUL, ready to be sent.
std::string encode(const Call& call);
std::string encode(Reply reply);

/// Values and keys in one call: as many as thousands of kernels have. A reply of the daemon may have more.
inline constexpr std::size_t kMaxCallValues = 1u << 17;
/// Members of one object in a call; no type of io.gpuctl has more. So few are compared one by one without much ado,
/// whatever their keys are.
inline constexpr std::size_t kMaxCallMembers = 32;

/// From one message without its NUL. Refuses anything but exactly one JSON object of the right shape, in UTF-8 and at
/// most 32 levels deep; the error message says what was wrong.
Result<Call> decode_call(std::string_view message);
Result<Reply> decode_reply(std::string_view message);

/// JSON text of an object, without NUL.
std::string to_text(const boost::json::object& object);

/// `text` with every byte sequence that is not UTF-8 replaced by U+FFFD: command lines and symbol names may hold any
/// bytes, JSON may not.
std::string to_utf8(std::string_view text);

}  // namespace gpuctl::ipc
