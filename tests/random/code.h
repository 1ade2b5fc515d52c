// The text of one function while it is written: instructions, and the registers and labels they use.
#pragma once

#include <array>
#include <sstream>
#include <string>

namespace gpuctl::random_kernels {

enum class Kind { kWord, kLong, kPredicate, kFloat, kHalf };

class Code {
 public:
  /// `prefix` makes the labels of a module differ.
  explicit Code(std::string prefix) : prefix_(std::move(prefix)) {}

  /// A register nobody has used yet.
  std::string reg(Kind kind) {
    const auto index = static_cast<std::size_t>(kind);
    return std::string(kNames[index]) + std::to_string(counts_[index]++);
  }
  std::string label() { return "$" + prefix_ + "_" + std::to_string(labels_++); }

  /// One instruction, without its semicolon.
  template <class... Parts>
  void add(const Parts&... parts) {
    text_ << "  ";
    (text_ << ... << parts);
    text_ << ";\n";
  }
  void place(const std::string& label) { text_ << label << ":\n"; }
  void open() { text_ << "  {\n"; }
  void close() { text_ << "  }\n"; }

  /// The declarations of all registers, then the instructions.
  std::string body() const {
    std::string result;
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      if (counts_[i] == 0) continue;
      result += std::string("  .reg ") + kTypes[i] + " " + kNames[i] + "<" + std::to_string(counts_[i]) + ">;\n";
    }
    return result + text_.str();
  }

 private:
  static constexpr std::array<const char*, 5> kNames = {"%r", "%rd", "%p", "%f", "%h"};
  static constexpr std::array<const char*, 5> kTypes = {".b32", ".b64", ".pred", ".f32", ".b16"};
  std::string prefix_;
  std::ostringstream text_;
  std::array<unsigned, 5> counts_{};
  unsigned labels_ = 0;
};

}  // namespace gpuctl::random_kernels
