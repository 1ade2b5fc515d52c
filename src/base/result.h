// The project's one error convention (CONTRIBUTING, "Errors"): an outcome that a caller must expect is a Result. An
// unexpected one is an exception, and no exception may leave a C API or a thread in another program's process.
// Written here because C++20 has no std::expected, and because every source includes it: Boost's costs each of them a
// fifth of its compile time.
#pragma once

#include <concepts>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

namespace gpuctl {

/// One clear line for a person: names the file, line, field or argument at fault, and no trailing newline.
struct Error {
  std::string message;
};

/// value() of a failed outcome: the caller did not ask first, which is a programming error.
template <class E>
[[noreturn]] void throw_failed(const E& error) {
  if constexpr (requires { error.message(); }) {
    throw std::logic_error(error.message());
  } else {
    throw std::logic_error(error.message);
  }
}

/// Either a value or an error, as std::expected of C++23. E has a `message`. value() of a failed outcome throws
/// std::logic_error; operator* and -> must not be used on one at all.
template <class T, class E>
class [[nodiscard]] BasicResult {
 public:
  using value_type = T;
  using error_type = E;

  BasicResult() requires std::default_initializable<T> : state_(std::in_place_index<0>) {}
  template <class U>
  requires(std::is_convertible_v<U&&, T> && !std::is_convertible_v<U&&, E>) BasicResult(U&& value)
      : state_(std::in_place_index<0>, std::forward<U>(value)) {}
  template <class U>
  requires(std::is_convertible_v<U&&, E> && !std::is_convertible_v<U&&, T>) BasicResult(U&& error)
      : state_(std::in_place_index<1>, std::forward<U>(error)) {}

  bool has_value() const noexcept { return state_.index() == 0; }
  bool has_error() const noexcept { return !has_value(); }
  explicit operator bool() const noexcept { return has_value(); }

  T& value() & { return checked(), std::get<0>(state_); }
  const T& value() const& { return checked(), std::get<0>(state_); }
  T&& value() && { return checked(), std::get<0>(std::move(state_)); }

  T& operator*() & noexcept { return *std::get_if<0>(&state_); }
  const T& operator*() const& noexcept { return *std::get_if<0>(&state_); }
  T&& operator*() && noexcept { return std::move(*std::get_if<0>(&state_)); }
  T* operator->() noexcept { return std::get_if<0>(&state_); }
  const T* operator->() const noexcept { return std::get_if<0>(&state_); }

  /// The error, or an empty one where there is a value.
  E error() const& { return has_error() ? std::get<1>(state_) : E{}; }
  E error() && { return has_error() ? std::get<1>(std::move(state_)) : E{}; }

 private:
  void checked() const {
    if (has_error()) throw_failed(std::get<1>(state_));
  }

  std::variant<T, E> state_;
};

/// Success without a value is `return {};`.
template <class E>
class [[nodiscard]] BasicResult<void, E> {
 public:
  using value_type = void;
  using error_type = E;

  BasicResult() = default;
  BasicResult(E error) : error_(std::move(error)) {}

  bool has_value() const noexcept { return !error_; }
  bool has_error() const noexcept { return error_.has_value(); }
  explicit operator bool() const noexcept { return has_value(); }
  void value() const {
    if (error_) throw_failed(*error_);
  }
  E error() const& { return error_ ? *error_ : E{}; }
  E error() && { return error_ ? std::move(*error_) : E{}; }

 private:
  std::optional<E> error_;
};

template <class T>
using Result = BasicResult<T, Error>;

/// `return fail("...")` in a function that returns any Result.
inline Error fail(std::string message) {
  return Error{std::move(message)};
}

}  // namespace gpuctl
