// For the unit tests: GoogleTest, and what most of them use of the standard library.
#pragma once

#include <gtest/gtest.h>

#include <iostream>
#include <sstream>
#include <thread>

#include "std.h"
