// Handles given to the program. A handle is the address of its object. It is followed only if it is registered here, so
// a stale or invented handle gives an error instead of a crash.
#pragma once

#include <memory>
#include <mutex>
#include <unordered_map>

namespace gpuctl::softgpu {

template <class Handle, class Object>
class Registry {
 public:
  Handle add(std::shared_ptr<Object> object) {
    const std::lock_guard lock(mutex_);
    auto* handle = reinterpret_cast<Handle>(object.get());
    objects_[handle] = std::move(object);
    return handle;
  }

  std::shared_ptr<Object> find(Handle handle) const {
    const std::lock_guard lock(mutex_);
    const auto found = objects_.find(handle);
    return found == objects_.end() ? nullptr : found->second;
  }

  /// Removes the object and returns it, or nullptr.
  std::shared_ptr<Object> remove(Handle handle) {
    const std::lock_guard lock(mutex_);
    const auto found = objects_.find(handle);
    if (found == objects_.end()) return nullptr;
    auto object = std::move(found->second);
    objects_.erase(found);
    return object;
  }

  /// Removes all objects that `predicate` chooses.
  template <class Predicate>
  void remove_if(Predicate predicate) {
    std::unordered_map<Handle, std::shared_ptr<Object>> gone;  // destroyed after the mutex is released
    const std::lock_guard lock(mutex_);
    for (auto item = objects_.begin(); item != objects_.end();) {
      if (predicate(*item->second)) {
        gone.insert(objects_.extract(item++));
      } else {
        ++item;
      }
    }
  }

 private:
  mutable std::mutex mutex_;
  std::unordered_map<Handle, std::shared_ptr<Object>> objects_;
};

}  // namespace gpuctl::softgpu
