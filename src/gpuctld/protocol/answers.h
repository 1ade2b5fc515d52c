// Short forms of the methods' answers.
#pragma once

#include <boost/json/object.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "gpuctld/protocol/varlink_server.h"
#include "ipc/fields.h"
#include "sched/slice.h"

namespace gpuctl::daemon {

Answer success(boost::json::object parameters = {});

/// `error` includes its interface's name; refuse_own takes an error of io.gpuctl.
Answer refuse(std::string_view error, boost::json::object parameters);
Answer refuse_own(const char* error, boost::json::object parameters);
Answer refuse(const sched::SliceError& error);

/// PermissionDenied: what is asked for is this user's.
Answer refuse_of_user(std::uint32_t uid);

/// InvalidValue; for `fields`: their first problem.
Answer invalid(const std::string& field, const std::string& reason);
Answer invalid(const ipc::Fields& fields);

/// The answer to a call that is not one of io.gpuctl: those of org.varlink.service, and of unknown interfaces. Empty
/// for a call of io.gpuctl.
std::optional<Answer> about_service(const ipc::Call& call);

/// The peer of a session, as the slice tree needs it.
sched::Caller caller(const Session& session);

}  // namespace gpuctl::daemon
