// Memory that graphs allocate (cuMemAllocAsync in a capturing stream, cuGraphAddMemAllocNode). Its address is fixed
// when the node is made, and the memory exists as long as anything refers to it. A launch only decides whether it may
// be used.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>

namespace gpuctl::softgpu {

class Context;
class Memory;

class GraphMemory {
 public:
  GraphMemory(Memory& memory, std::uint64_t address, std::size_t bytes, int device);
  ~GraphMemory();
  GraphMemory(const GraphMemory&) = delete;
  GraphMemory& operator=(const GraphMemory&) = delete;

  std::uint64_t address() const { return address_; }
  std::size_t bytes() const { return bytes_; }
  int device() const { return device_; }

 private:
  Memory& memory_;
  const std::uint64_t address_;
  const std::size_t bytes_;
  const int device_;
  std::uint64_t id_ = 0;  ///< of the allocation
};

/// Any thread.
class GraphMemories {
 public:
  explicit GraphMemories(Memory& memory) : memory_(memory) {}

  /// nullptr if there is not enough memory.
  std::shared_ptr<GraphMemory> allocate(Context& context, std::size_t bytes);

  /// The memory that a node has allocated at that address, or nullptr.
  std::shared_ptr<GraphMemory> find(std::uint64_t address) const;

  /// Whether a launch has allocated it and it is not freed yet.
  bool live(const GraphMemory& memory) const;
  void set_live(const std::shared_ptr<GraphMemory>& memory, bool live);

  /// Of a device, in bytes. What launches have allocated stays reserved until trim().
  struct Amounts {
    std::uint64_t used = 0, most_used = 0, reserved = 0, most_reserved = 0;
  };
  Amounts amounts(int device) const;
  void trim(int device);
  /// From now on the most is what it is now.
  void reset_most(int device, bool used);

 private:
  Memory& memory_;
  mutable std::mutex mutex_;
  std::map<std::uint64_t, std::weak_ptr<GraphMemory>> known_;
  std::set<std::shared_ptr<GraphMemory>> live_;
  std::map<int, Amounts> amounts_;
};

}  // namespace gpuctl::softgpu
