// toml++ without its shared library: its code is compiled here and nowhere else.
#define TOML_IMPLEMENTATION
#include <toml++/toml.h>
