// Who swaps to NBD disks on this machine.
#pragma once

#include <istream>
#include <string>
#include <vector>

namespace tuck::cli {

// The devices of the kernel's NBD client (/dev/nbd…) among those that /proc/swaps lists.
std::vector<std::string> nbd_swap_devices(std::istream& swaps);
// Of this machine, now.
std::vector<std::string> nbd_swap_devices();

}  // namespace tuck::cli
