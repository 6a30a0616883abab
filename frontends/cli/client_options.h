// The options of `tuck serve` that bound what clients may do.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "base/base.h"
#include "frontends/nbd/nbd.h"

namespace CLI {
class App;
}

namespace tuck::cli {

// The value of --allow-uid that lets every user in.
inline constexpr const char* kAnyUser = "any";

// As they were written.
struct ClientArguments {
  std::string in_flight;  // empty: not given
  unsigned negotiation_s = 10;
  unsigned negotiation_options = 64;
  std::string negotiation_bytes = "1M";
  unsigned request_stall_s = 0;
  unsigned reply_stall_s = 0;
  std::vector<std::string> allowed_users;
};

struct ClientSettings {
  uint64_t in_flight_bytes_max = 0;  // 0: enough for every connection
  std::chrono::milliseconds negotiation_time_max{0};
  nbd::NegotiationLimits negotiation;
  nbd::StallLimits stall;
  nbd::PeerPolicy peers;
};

void add_client_options(CLI::App& serve, ClientArguments& arguments);
// The errors are the user's and name the option.
Result<ClientSettings, Error> check_clients(const ClientArguments& arguments);
void set_client_options(const ClientSettings& settings, nbd::ServerOptions& options);

}  // namespace tuck::cli
