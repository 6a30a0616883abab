// The rules that every #include of the product's code keeps (docs/architecture.md, "Layers").
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tuck::layering {

// A folder, lowest first in layers(), and the one header of it that other folders may include.
struct Layer {
  std::string_view folder;
  std::string_view facade;  // empty: nothing includes this folder
};

const std::vector<Layer>& layers();

// What an #include line names; nothing if the line is not one.
std::optional<std::string> included_path(std::string_view line);

// Why a file of the repository may not include this path; nothing if it may. Both are relative to
// the repository's root. Paths outside the repository (the system's, libraries') are allowed.
std::optional<std::string> violation(std::string_view file, std::string_view included);

// All violations in a file's text, as FILE:LINE: reason.
std::vector<std::string> violations_in(std::string_view file, std::string_view text);

}  // namespace tuck::layering
