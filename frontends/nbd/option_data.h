// The data of the options that have some, checked: lengths that add up, strings that the protocol
// allows. The views point into the data given.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "frontends/nbd/protocol.h"

namespace tuck::nbd {

// INFO and GO.
struct InfoRequest {
  std::string_view name;
  uint32_t asked = 0;  // bit n: InfoType n; types that nobody knows are left out
  bool asks(InfoType type) const noexcept {
    return (asked >> static_cast<unsigned>(type) & 1) != 0;
  }
};

// Nothing where the data is malformed: a name too long or with a NUL, lengths that do not add up.
std::optional<InfoRequest> parse_info_request(std::span<const std::byte> data) noexcept;

// LIST_META_CONTEXT and SET_META_CONTEXT.
struct MetaRequest {
  std::string_view name;
  uint32_t queries = 0;
  bool base_allocation = false;  // one query is base:allocation
  bool base_wildcard = false;  // one query is base:, which stands for all of the namespace in LIST
};

std::optional<MetaRequest> parse_meta_request(std::span<const std::byte> data) noexcept;

// At most kStringBytesMax bytes, none of them NUL.
bool is_valid_text(std::string_view text) noexcept;

inline std::string_view as_text(std::span<const std::byte> data) noexcept {
  return {reinterpret_cast<const char*>(data.data()), data.size()};
}

}  // namespace tuck::nbd
