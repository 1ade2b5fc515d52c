// The interface definition as text, embedded at build time, and the names of the Varlink service interface.
#pragma once

#include <string_view>

namespace gpuctl::ipc {

inline constexpr std::string_view kInterface = "io.gpuctl";
inline constexpr std::string_view kServiceInterface = "org.varlink.service";
inline constexpr std::string_view kDefaultSocket = "/run/gpuctld/io.gpuctl";

/// Errors with which every Varlink service may reply.
inline constexpr std::string_view kInterfaceNotFound = "org.varlink.service.InterfaceNotFound";        // (interface)
inline constexpr std::string_view kMethodNotFound = "org.varlink.service.MethodNotFound";              // (method)
inline constexpr std::string_view kMethodNotImplemented = "org.varlink.service.MethodNotImplemented";  // (method)
inline constexpr std::string_view kInvalidParameter = "org.varlink.service.InvalidParameter";          // (parameter)
inline constexpr std::string_view kServicePermissionDenied = "org.varlink.service.PermissionDenied";   // ()
inline constexpr std::string_view kExpectedMore = "org.varlink.service.ExpectedMore";                  // ()

/// The text of io.gpuctl.varlink.
std::string_view interface_text();

/// The text of org.varlink.service.varlink, an interface that every service has.
std::string_view service_interface_text();

/// For GetInterfaceDescription: the text of either interface; empty if this service has no such interface.
std::string_view interface_description(std::string_view interface);

}  // namespace gpuctl::ipc
