// What the server of one disk must answer to a client's stream of requests: it reads both streams
// and judges every byte of the replies. Requests take effect in the order in which they were sent;
// replies may come in any order. Written from the protocol, not from the server: it shares only
// constants with it.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/base.h"

namespace tuck::test {

struct OracleOptions {
  uint64_t disk_bytes = 0;
  bool structured = false;
  bool base_allocation = false;
  bool read_only = false;
};

class StreamOracle {
 public:
  explicit StreamOracle(const OracleOptions& options);

  // The client's next bytes. Cookies of requests that have not been answered must differ.
  void sent(std::span<const std::byte> bytes);
  // The server's next bytes. Empty, or what is wrong with them.
  std::string received(std::span<const std::byte> bytes);

  // Whole requests that have not been answered in full.
  size_t outstanding() const { return expected_.size(); }
  // Cookies of the requests that were answered in full since the last call, in that order.
  std::vector<uint64_t> answered() { return std::exchange(answered_, {}); }
  // The client said goodbye, or sent what ends a connection; nothing behind it counts.
  bool said_goodbye() const { return end_ == End::goodbye; }
  bool ended() const { return end_ != End::none; }
  // Empty, or where a disk's bytes differ from what they must be. Only when nothing is outstanding.
  std::string judge_disk(std::span<const std::byte> disk) const;

  // Gives the requests of a client's stream the cookies 0, 1, 2, … so that they differ.
  static void number_requests(std::span<std::byte> stream);

 private:
  enum class End : uint8_t { none, goodbye, broken };
  using PageBytes = std::array<std::byte, kPageSize>;
  // Pages that are written anew, never changed, so that copies of the disk cost little. Null:
  // zeroes.
  using Disk = std::vector<std::shared_ptr<const PageBytes>>;

  struct Header {
    uint16_t flags = 0;
    uint16_t command = 0;
    uint64_t cookie = 0;
    uint64_t offset = 0;
    uint32_t length = 0;
  };
  struct Expected {
    Header header;
    uint32_t error = 0;
    Disk disk;             // as it is read by READ and BLOCK_STATUS
    uint64_t covered = 0;  // by chunks
  };
  // What is wrong, and how many bytes were judged; 0: more has to come first.
  using Verdict = std::pair<std::string, size_t>;

  void take(const Header& header);
  uint32_t error_of(const Header& header) const;
  void put(uint64_t offset, std::span<const std::byte> bytes);
  void zero(uint64_t offset, uint64_t length);
  void trim(uint64_t offset, uint64_t length);
  static std::string compare(const Disk& disk, uint64_t offset, std::span<const std::byte> bytes);
  static bool is_zero(const Disk& disk, uint64_t offset, uint64_t length);
  Verdict judge(std::span<const std::byte> bytes);
  Verdict judge_simple(std::span<const std::byte> bytes);
  Verdict judge_chunk(std::span<const std::byte> bytes);
  std::string judge_read_chunk(Expected& request, uint16_t type,
                               std::span<const std::byte> payload);
  std::string judge_block_status(const Expected& request, std::span<const std::byte> payload) const;

  const OracleOptions options_;
  Disk disk_;
  End end_ = End::none;
  std::vector<std::byte> in_;       // of a header that is not whole
  Header write_;                    // whose payload comes
  uint64_t payload_left_ = 0;       // of write_
  std::vector<std::byte> payload_;  // of write_, where it will take effect
  std::map<uint64_t, Expected> expected_;
  std::vector<uint64_t> answered_;
  std::vector<std::byte> heard_;  // of a reply that is not whole
};

}  // namespace tuck::test
