// The project's one error convention (CONTRIBUTING, "Errors"): an outcome that a caller must expect is a Result. An
// unexpected one is an exception, and no exception may leave a C API or a thread in another program's process.
#pragma once

#include <boost/system/result.hpp>
#include <boost/throw_exception.hpp>
#include <stdexcept>
#include <string>
#include <utility>

namespace gpuctl {

/// One clear line for a person: names the file, line, field or argument at fault, and no trailing newline.
struct Error {
  std::string message;
};

/// Called by Boost for value() of a failed Result: a programming error, hence an exception.
[[noreturn]] inline void throw_exception_from_error(const Error& error, const boost::source_location&) {
  throw std::logic_error(error.message);
}

template <class T>
using Result = boost::system::result<T, Error>;

/// `return fail("...")` in a function that returns any Result.
inline Error fail(std::string message) {
  return Error{std::move(message)};
}

}  // namespace gpuctl
