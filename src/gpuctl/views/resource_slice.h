// Slices and GPUs as Kubernetes' scheduler wants to hear of them: ResourceSlice of resource.k8s.io/v1, which a driver
// for dynamic resource allocation (DRA) publishes.
#pragma once

#include <boost/json/array.hpp>
#include <boost/json/value.hpp>
#include <string>
#include <vector>

#include "ipc/types.h"

namespace gpuctl::cli {

struct ResourceSlicePlan {
  std::string driver;  ///< a DNS subdomain
  std::string node;    ///< of Kubernetes
  /// Which slices are devices, whatever is below them; none: those without slices below them.
  std::vector<std::string> slices = {};
};

/// Why Kubernetes would refuse the name: of a driver, or of a node. Empty: it would not.
std::string subdomain_problem(const std::string& name, std::size_t most);

/// One object for each 128 devices. A device is a slice on one GPU, or a whole GPU if there are no slices. Of its SMs
/// and its memory each claim takes a part. `notes`: what had to be left out.
boost::json::array resource_slices(const ResourceSlicePlan& plan, const std::vector<ipc::Device>& devices,
                                   const std::vector<ipc::Slice>& slices, std::vector<std::string>& notes);

/// YAML, with a line break at its end.
std::string to_yaml(const boost::json::value& value);

}  // namespace gpuctl::cli
