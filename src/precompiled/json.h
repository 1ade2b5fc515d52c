// For the command line and the daemon, most of whose sources handle messages.
#pragma once

#include <boost/json.hpp>

#include "std.h"
