#include "base/result.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>

namespace tuck {
namespace {

Result<int> half_of(int number) {
  if (number % 2 != 0) return Errc::invalid;
  return number / 2;
}

TEST(Result, HoldsAValueOrAnError) {
  const Result<int> four = half_of(8);
  ASSERT_TRUE(four.ok());
  EXPECT_TRUE(static_cast<bool>(four));
  EXPECT_EQ(*four, 4);

  const Result<int> failed = half_of(7);
  ASSERT_FALSE(failed.ok());
  EXPECT_FALSE(static_cast<bool>(failed));
  EXPECT_EQ(failed.error(), Errc::invalid);
}

TEST(Result, MovesWhatCannotBeCopied) {
  Result<std::unique_ptr<int>, Error> result(std::make_unique<int>(5));
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(**result, 5);
  const std::unique_ptr<int> taken = std::move(*result);
  EXPECT_EQ(*taken, 5);
}

TEST(Result, CarriesASentence) {
  const Result<int, Error> result(Error{Errc::no_space, "no room: take less"});
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, Errc::no_space);
  EXPECT_EQ(result.error().message, "no room: take less");
}

TEST(Result, EveryCodeHasItsOwnName) {
  std::set<std::string> names;
  for (int code = 0; code <= static_cast<int>(Errc::shutting_down); ++code) {
    const std::string name = name_of(static_cast<Errc>(code));
    EXPECT_NE(name, "unknown");
    EXPECT_TRUE(names.insert(name).second) << name;
  }
}

}  // namespace
}  // namespace tuck
