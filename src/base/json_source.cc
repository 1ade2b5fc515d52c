// Boost.JSON without its shared library: the one place where its code is compiled.
#include <boost/json/src.hpp>
