// How the types of io.gpuctl are written as JSON and read back. Apart from the types, because most who use those
// neither write nor read JSON.
#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ipc/fields.h"
#include "ipc/types.h"

namespace gpuctl::ipc {

/// Absent optional fields are left out. Strings are made valid UTF-8.
boost::json::object to_json(const Slice& slice);
boost::json::object to_json(const SliceSettings& settings);
boost::json::object to_json(const Device& device);
boost::json::object to_json(const Latency& latency);
boost::json::object to_json(const LatencyBucket& bucket);
boost::json::object to_json(const SliceTotals& totals);
boost::json::object to_json(const Pressure& pressure);
boost::json::object to_json(const SliceOnGpu& slice);
boost::json::object to_json(const ClientUsage& usage);
boost::json::object to_json(const Client& client);
boost::json::object to_json(const Kernel& kernel);
boost::json::object to_json(const KernelPoint& point);
boost::json::object to_json(const KernelDurations& kernel);
boost::json::object to_json(const Mps& mps);
boost::json::object to_json(const Status& status);
boost::json::object to_json(const WantedSlice& slice);
boost::json::object to_json(const SliceDifference& difference);
boost::json::object to_json(const EndedClient& client);
boost::json::object to_json(const Event& event);
boost::json::object to_json(const UsageEntry& entry);
boost::json::object to_json(const Fairness& fairness);
boost::json::object to_json(const MeasuredIsolation& measured);
boost::json::object to_json(const Room& room);
boost::json::object to_json(const Advice& advice);
boost::json::object to_json(const Snapshot& snapshot);
boost::json::object to_json(const Launch& launch);

/// An array of any of these.
template <class T>
boost::json::array to_json(const std::vector<T>& list) {
  boost::json::array array;
  array.reserve(list.size());
  for (const T& item : list) array.emplace_back(to_json(item));
  return array;
}

/// Reads from the fields of an object; problems are recorded there (`fields.ok()`). Checks types, and that amounts are
/// not negative. The daemon checks which values are allowed (names of policies, sums of reserves).
void read(Fields& fields, Slice& slice);
void read(Fields& fields, SliceSettings& settings);
void read(Fields& fields, Device& device);
void read(Fields& fields, Latency& latency);
void read(Fields& fields, LatencyBucket& bucket);
void read(Fields& fields, SliceTotals& totals);
void read(Fields& fields, Pressure& pressure);
void read(Fields& fields, SliceOnGpu& slice);
void read(Fields& fields, ClientUsage& usage);
void read(Fields& fields, Client& client);
void read(Fields& fields, Kernel& kernel);
void read(Fields& fields, KernelPoint& point);
void read(Fields& fields, KernelDurations& kernel);
void read(Fields& fields, Mps& mps);
void read(Fields& fields, Status& status);
void read(Fields& fields, WantedSlice& slice);
void read(Fields& fields, SliceDifference& difference);
void read(Fields& fields, EndedClient& client);
void read(Fields& fields, Event& event);
void read(Fields& fields, UsageEntry& entry);
void read(Fields& fields, Fairness& fairness);
void read(Fields& fields, MeasuredIsolation& measured);
void read(Fields& fields, Room& room);
void read(Fields& fields, Advice& advice);
void read(Fields& fields, Snapshot& snapshot);
void read(Fields& fields, Launch& launch);

/// `fields.objects(name)`, each read as T, up to the first problem.
template <class T>
std::vector<T> read_list(Fields& fields, std::string_view name) {
  std::vector<T> list;
  for (Fields& item : fields.objects(name)) {
    read(item, list.emplace_back());
    if (!fields.ok()) break;
  }
  return list;
}

/// Reads a whole object. Fields that the type does not know are ignored.
template <class T>
Result<T> from_json(const boost::json::object& object) {
  Fields fields(object);
  T value;
  read(fields, value);
  if (!fields.ok()) return fields.error();
  return value;
}

}  // namespace gpuctl::ipc
