#include "frontends/cli/swap_users.h"

#include <fstream>

namespace tuck::cli {

std::vector<std::string> nbd_swap_devices(std::istream& swaps) {
  std::vector<std::string> devices;
  std::string line;
  while (std::getline(swaps, line)) {
    std::string device = line.substr(0, line.find_first_of(" \t"));
    if (device.starts_with("/dev/nbd")) devices.push_back(std::move(device));
  }
  return devices;
}

std::vector<std::string> nbd_swap_devices() {
  std::ifstream swaps("/proc/swaps");
  return nbd_swap_devices(swaps);
}

}  // namespace tuck::cli
