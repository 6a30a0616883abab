// Pages that repeat one 64-bit word.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/base.h"

namespace tuck::engine {

// Whether the page (any alignment) repeats one word, which *word then is.
bool is_same_filled(const std::byte* page, uint64_t* word) noexcept;

// Fills kPageSize bytes.
void fill_page(std::byte* page, uint64_t word) noexcept;

}  // namespace tuck::engine
