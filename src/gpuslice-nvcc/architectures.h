// Which PTX an nvcc command line generates code from, and which it keeps.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace gpuctl::nvcc {

/// Gets the options about architectures one by one.
class Architectures {
 public:
  void gpu_architecture(const std::string& value) { architecture_ = value; }  ///< -arch
  void gpu_code(const std::string& value);                                    ///< -code
  void generate_code(const std::string& value);                               ///< -gencode

  /// The compute_ names from which code is generated without their PTX being kept, each once. `resolve`: see
  /// Surroundings::virtual_architectures.
  std::vector<std::string> without_ptx(
      const std::function<std::vector<std::string>(const std::string& architecture)>& resolve) const;

 private:
  struct Generated {
    std::string architecture;
    std::vector<std::string> code;
  };

  std::string architecture_;
  std::vector<std::string> code_;
  std::vector<Generated> generated_;
};

}  // namespace gpuctl::nvcc
