// Boost.JSON without its shared library: its code is compiled here and nowhere else.
#include <boost/json/src.hpp>
