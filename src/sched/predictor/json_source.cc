// The one place where this library compiles Boost.JSON.
#include <boost/json/src.hpp>
