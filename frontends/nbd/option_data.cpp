#include "frontends/nbd/option_data.h"

namespace tuck::nbd {

namespace {

// Takes pieces off the front. Every length is compared with what is left, never added up.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> data) noexcept : left_(data) {}

  bool at_end() const noexcept { return left_.empty(); }
  size_t left() const noexcept { return left_.size(); }

  std::optional<uint16_t> take16() noexcept {
    if (left_.size() < 2) return std::nullopt;
    return load16(take(2).data());
  }
  std::optional<uint32_t> take32() noexcept {
    if (left_.size() < 4) return std::nullopt;
    return load32(take(4).data());
  }
  // A length of 32 bits and a string of that length.
  std::optional<std::string_view> take_string() noexcept {
    const auto length = take32();
    if (!length || *length > left_.size()) return std::nullopt;
    const std::string_view text = as_text(take(*length));
    if (!is_valid_text(text)) return std::nullopt;
    return text;
  }

 private:
  std::span<const std::byte> take(size_t bytes) noexcept {
    const auto taken = left_.first(bytes);
    left_ = left_.subspan(bytes);
    return taken;
  }

  std::span<const std::byte> left_;
};

}  // namespace

bool is_valid_text(std::string_view text) noexcept {
  return text.size() <= kStringBytesMax && text.find('\0') == std::string_view::npos;
}

std::optional<InfoRequest> parse_info_request(std::span<const std::byte> data) noexcept {
  Reader reader(data);
  const auto name = reader.take_string();
  if (!name) return std::nullopt;
  const auto count = reader.take16();
  if (!count || reader.left() != size_t{2} * *count) return std::nullopt;

  InfoRequest request{*name, 0};
  while (const auto type = reader.take16()) {
    if (*type <= static_cast<uint16_t>(InfoType::block_size)) request.asked |= 1u << *type;
  }
  return request;
}

std::optional<MetaRequest> parse_meta_request(std::span<const std::byte> data) noexcept {
  Reader reader(data);
  const auto name = reader.take_string();
  if (!name) return std::nullopt;
  const auto count = reader.take32();
  if (!count) return std::nullopt;

  MetaRequest request{*name, *count, false, false};
  // A count that lies ends at the first query that is not there: the data bounds this loop.
  for (uint32_t i = 0; i < *count; ++i) {
    const auto query = reader.take_string();
    if (!query) return std::nullopt;
    if (*query == kBaseAllocationName) request.base_allocation = true;
    if (*query == kBaseNamespace) request.base_wildcard = true;
  }
  if (!reader.at_end()) return std::nullopt;
  return request;
}

}  // namespace tuck::nbd
