// The VM front end, as far as it exists: the swap area. Façade of frontends/vm.
#pragma once

#include "frontends/vm/swap_area.h"  // IWYU pragma: export
