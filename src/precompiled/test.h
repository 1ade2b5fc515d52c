// What tests use: precompiled once for all tests of a part.
#pragma once

#include <gtest/gtest.h>

#include "std.h"
