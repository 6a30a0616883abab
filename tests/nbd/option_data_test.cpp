// Option data in memory of exactly its size, so that a sanitizer sees every byte read behind it.
#include "frontends/nbd/option_data.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/nbd/handshake.h"
#include "tests/support/scale.h"
#include "tests/support/seed.h"

namespace tuck::test {
namespace {

std::vector<std::byte> exact(std::string_view text) {
  const auto bytes = as_bytes(text);
  return {bytes.begin(), bytes.end()};
}

TEST(OptionData, InfoRequest) {
  const auto data = exact(info_data("disk", {3, 1, 4, 0xffff}));
  const auto request = nbd::parse_info_request(data);
  ASSERT_TRUE(request.has_value());
  EXPECT_EQ(request->name, "disk");
  EXPECT_TRUE(request->asks(nbd::InfoType::name));
  EXPECT_TRUE(request->asks(nbd::InfoType::block_size));
  EXPECT_FALSE(request->asks(nbd::InfoType::description));
  EXPECT_FALSE(request->asks(nbd::InfoType::export_));
}

TEST(OptionData, MetaRequest) {
  const auto data = exact(meta_data("disk", {"base:", "other:x", "base:allocation"}));
  const auto request = nbd::parse_meta_request(data);
  ASSERT_TRUE(request.has_value());
  EXPECT_EQ(request->name, "disk");
  EXPECT_EQ(request->queries, 3u);
  EXPECT_TRUE(request->base_allocation);
  EXPECT_TRUE(request->base_wildcard);
}

TEST(OptionData, NothingShorterOrLongerIsRight) {
  const std::string info = info_data("disk", {1, 2});
  const std::string meta = meta_data("disk", {"base:allocation", ""});
  for (size_t length = 0; length < info.size(); ++length) {
    EXPECT_FALSE(nbd::parse_info_request(exact(info.substr(0, length))).has_value()) << length;
  }
  for (size_t length = 0; length < meta.size(); ++length) {
    EXPECT_FALSE(nbd::parse_meta_request(exact(meta.substr(0, length))).has_value()) << length;
  }
  EXPECT_FALSE(nbd::parse_info_request(exact(info + "x")).has_value());
  EXPECT_FALSE(nbd::parse_meta_request(exact(meta + "x")).has_value());
}

TEST(OptionData, ChangedBytesStayInside) {
  Random random(mix(seed(), 3));
  const std::string originals[] = {info_data("disk", {0, 1, 2, 3}),
                                   meta_data("disk", {"base:allocation", "base:"})};
  for (uint32_t round = 0; round < scaled(200'000); ++round) {
    std::string text = originals[random.below(2)];
    text.resize(random.below(text.size() + 1));
    for (uint64_t i = random.below(4); i > 0 && !text.empty(); --i) {
      text[random.below(text.size())] =
          static_cast<char>(random.one_in(2) ? random.below(32) : random.next());
    }
    const auto data = exact(text);
    // What is accepted is a piece of the data, and fits with its length field.
    if (const auto request = nbd::parse_info_request(data)) {
      ASSERT_LE(4 + request->name.size() + 2, data.size());
      ASSERT_EQ(request->name, nbd::as_text(data).substr(4, request->name.size()));
    }
    if (const auto request = nbd::parse_meta_request(data)) {
      ASSERT_LE(4 + request->name.size() + 4 + 4 * size_t{request->queries}, data.size());
      ASSERT_EQ(request->name, nbd::as_text(data).substr(4, request->name.size()));
    }
  }
}

}  // namespace
}  // namespace tuck::test
