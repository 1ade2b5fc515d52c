// The code of Boost.Asio, compiled once: with it in each source, the daemon takes twice as long to build.
#include <boost/asio/impl/src.hpp>
