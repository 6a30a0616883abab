// The limit of open files, which a server with many connections may reach.
#pragma once

#include <cstdint>

#include "base/base.h"

namespace tuck::nbd {

// Makes sure that the process may open so many descriptors besides those that it has: raises its
// soft limit (RLIMIT_NOFILE) as far as needed. The error says what to do where the hard limit is
// lower.
Status make_room_for_descriptors(uint64_t more);

}  // namespace tuck::nbd
