#include "ipc/interface.h"

#include "ipc/interface_text.inc"

namespace gpuctl::ipc {

std::string_view interface_text() {
  return kEmbedded_io_gpuctl;
}

std::string_view service_interface_text() {
  return kEmbedded_org_varlink_service;
}

std::string_view interface_description(std::string_view interface) {
  if (interface == kInterface) return interface_text();
  if (interface == kServiceInterface) return service_interface_text();
  return {};
}

}  // namespace gpuctl::ipc
