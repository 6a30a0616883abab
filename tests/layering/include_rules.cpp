#include "tests/layering/include_rules.h"

#include <algorithm>
#include <array>

namespace tuck::layering {
namespace {

// Folders of the repository that the product's code knows nothing of.
constexpr std::array<std::string_view, 5> kOutside{"tests", "bench", "tools", "docs", "packaging"};

bool is_in(std::string_view path, std::string_view folder) {
  return path.size() > folder.size() && path.starts_with(folder) && path[folder.size()] == '/';
}

std::string_view trim_left(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t");
  return first == std::string_view::npos ? std::string_view{} : text.substr(first);
}

std::vector<Layer>::const_iterator layer_of(std::string_view path) {
  return std::find_if(layers().begin(), layers().end(),
                      [path](const Layer& layer) { return is_in(path, layer.folder); });
}

// frontends/NAME that is not in the list: a new folder must get its place before it is used.
bool is_unlisted(std::string_view path) {
  return is_in(path, "frontends") && layer_of(path) == layers().end();
}

}  // namespace

const std::vector<Layer>& layers() {
  static const std::vector<Layer> list{
      {"base", "base/base.h"},
      {"allocator", "allocator/allocator.h"},
      {"engine", "engine/engine.h"},
      {"frontends/vm", "frontends/vm/vm.h"},
      {"frontends/pager", "frontends/pager/pager.h"},
      {"frontends/nbd", "frontends/nbd/nbd.h"},
      {"frontends/capi", "frontends/capi/tuck.h"},
      {"frontends/cli", ""},
  };
  return list;
}

std::optional<std::string> included_path(std::string_view line) {
  line = trim_left(line);
  if (!line.starts_with('#')) return std::nullopt;
  line = trim_left(line.substr(1));
  if (!line.starts_with("include")) return std::nullopt;
  line = trim_left(line.substr(std::string_view("include").size()));
  if (line.empty() || (line.front() != '"' && line.front() != '<')) return std::nullopt;
  const size_t end = line.find(line.front() == '"' ? '"' : '>', 1);
  if (end == std::string_view::npos) return std::nullopt;
  return std::string(line.substr(1, end - 1));
}

std::optional<std::string> violation(std::string_view file, std::string_view included) {
  const std::string path(included);
  if (is_unlisted(file)) return "this folder has no place in the list of layers";
  if (is_unlisted(included)) return path + " is in no layer";
  if (path.starts_with(".")) return path + " is relative: write it from the repository's root";
  for (const std::string_view folder : kOutside) {
    if (is_in(included, folder)) return path + " is not part of the product";
  }
  const auto from = layer_of(file);
  const auto to = layer_of(included);
  if (from == layers().end() || to == layers().end() || from == to) return std::nullopt;
  if (to > from) {
    return path + " stands below: " + std::string(from->folder) + " may not know it";
  }
  if (included != to->facade) {
    return path + " is inside " + std::string(to->folder) + ": include " + std::string(to->facade);
  }
  return std::nullopt;
}

std::vector<std::string> violations_in(std::string_view file, std::string_view text) {
  std::vector<std::string> found;
  size_t number = 0;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    ++number;
    if (const auto included = included_path(text.substr(0, end))) {
      if (const auto reason = violation(file, *included)) {
        found.push_back(std::string(file) + ":" + std::to_string(number) + ": " + *reason);
      }
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return found;
}

}  // namespace tuck::layering
