// The files of the page, put into the program by embed_files.cmake.
#pragma once

#include <string_view>

namespace weft {

std::string_view PageHtml();
std::string_view PageStyle();
std::string_view PageScript();
std::string_view PageIcon();

}  // namespace weft
