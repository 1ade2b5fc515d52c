// For the daemon's tests.
#pragma once

#include "daemon.h"
#include "tests.h"
