// What `tuck serve` was told, checked once: everything behind this file may trust its settings.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/base.h"
#include "engine/engine.h"
#include "frontends/cli/client_options.h"
#include "frontends/cli/swap_protection.h"
#include "frontends/nbd/nbd.h"

namespace tuck::cli {

inline constexpr const char* kDefaultControlPath = "./tuck.control";
// The value of --control that asks for no control socket.
inline constexpr const char* kNoControl = "none";

// The options as they were written.
struct ServeArguments {
  std::vector<std::string> unix_paths;
  std::vector<std::string> tcp_addresses;
  bool stdio = false;
  std::string size;
  std::vector<std::string> exports;
  std::string codec = "lz4";
  std::string memory_limit;
  bool swap = false;
  bool lock_memory = false;
  std::string reserve;
  unsigned workers = 0;
  unsigned connections = 0;  // 0: not given
  ClientArguments clients;
  std::optional<unsigned> poll_us;
  std::string control;  // empty: not given
  std::string log_level = "info";
};

inline constexpr unsigned kPollMaxUs = 10'000;
// Under --swap the threads that serve are real-time threads: one that polls keeps others from the
// processor, those that its clients wait for among them.
inline constexpr unsigned kPollDefaultUs = 50;
inline constexpr unsigned kPollDefaultSwapUs = 0;
// Connections where no number is given. Each has 800 KiB of buffers, which cost nothing until they
// are used, or all of it when they are locked: then there is room for one a processor and some.
inline constexpr unsigned kConnectionsDefault = 128;
inline constexpr unsigned kConnectionsDefaultLocked = 16;
// And each wants some of the memory that the kernel keeps free.
inline constexpr unsigned kConnectionsDefaultSwap = 4;
// Frames ready for stores; under --swap stores have nothing else until the background gets memory.
inline constexpr uint64_t kReserveDefault = 2ull << 20;
inline constexpr uint64_t kReserveDefaultSwap = 16ull << 20;

struct ExportSetting {
  std::string name;
  uint64_t size_bytes = 0;

  // A page that the size ends in counts whole.
  uint64_t slots() const noexcept { return (size_bytes + kPageSize - 1) / kPageSize; }
  friend bool operator==(const ExportSetting&, const ExportSetting&) = default;
};

// Where `tuck stat` asks.
struct ControlSetting {
  std::string path;       // empty: no control socket
  bool required = false;  // given by the user: failing to open it stops the command
};

struct ServeSettings {
  std::vector<nbd::ListenAddress> listen;  // empty with stdio, or when all sockets are inherited
  bool stdio = false;
  std::vector<ExportSetting> exports;  // at least one, names differ
  engine::CodecSetting codec;
  uint64_t memory_limit_bytes = 0;  // 0: none
  uint64_t reserve_bytes = kReserveDefault;
  ProtectionMode protection = ProtectionMode::off;
  unsigned workers = 0;  // 0: the server chooses
  unsigned connections_max = kConnectionsDefault;
  ClientSettings clients;
  std::chrono::microseconds poll_time{0};
  ControlSetting control;
};

// inherited_sockets: how many listening sockets a service manager has handed over. The errors are
// the user's (exit status 2) and name the option.
Result<ServeSettings, Error> check_serve(const ServeArguments& arguments, int inherited_sockets);

// Parts of it, for tests.
Result<ExportSetting, Error> parse_export(const std::string& text, const std::string& default_size);
Result<nbd::ListenAddress, Error> parse_tcp_address(const std::string& text);
Status check_socket_path(const std::string& option, const std::string& path);

}  // namespace tuck::cli
