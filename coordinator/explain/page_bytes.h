// page/page.html with style and scripts in it, put together by page/embed_page.cmake.
#pragma once

#include <string_view>

namespace weft {

std::string_view PageBytes();

}  // namespace weft
