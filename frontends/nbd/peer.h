// Who is at the other end of a Unix socket.
#pragma once

#include <array>
#include <cstdint>
#include <cstdio>
#include <optional>

namespace tuck::nbd {

// As the kernel saw the process when it connected.
struct Peer {
  int32_t process = 0;  // 0: not visible from here (another PID namespace)
  uint32_t user = 0;
};

// For the end of a log line; nothing where nothing is known. Numbers only, and no allocation.
class PeerText {
 public:
  explicit PeerText(const std::optional<Peer>& peer) noexcept {
    if (!peer) return;
    std::snprintf(text_.data(), text_.size(), ", process %d, user %u", peer->process, peer->user);
  }
  const char* c_str() const noexcept { return text_.data(); }

 private:
  std::array<char, 48> text_{};
};

}  // namespace tuck::nbd
