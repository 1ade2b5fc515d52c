// What the methods answer, in short.
#pragma once

#include <boost/json/object.hpp>
#include <string>
#include <string_view>

#include "gpuctld/protocol/varlink_server.h"
#include "ipc/fields.h"
#include "sched/slice.h"

namespace gpuctl::daemon {

Answer success(boost::json::object parameters = {});

/// `error` with its interface's name; refuse_own: one of io.gpuctl.
Answer refuse(std::string_view error, boost::json::object parameters);
Answer refuse_own(const char* error, boost::json::object parameters);
Answer refuse(const sched::SliceError& error);

/// InvalidValue; of `fields`: the first problem found in them.
Answer invalid(const std::string& field, const std::string& reason);
Answer invalid(const ipc::Fields& fields);

/// The peer of a session, as the slice tree asks for it.
sched::Caller caller(const Session& session);

}  // namespace gpuctl::daemon
