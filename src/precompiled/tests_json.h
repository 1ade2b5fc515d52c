// For tests of messages: those of the command line, of the scheduler's records and of the protocol.
#pragma once

#include <boost/json.hpp>

#include "tests.h"
