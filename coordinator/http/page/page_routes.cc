#include "coordinator/http/page/page_routes.h"

#include <string>
#include <string_view>
#include <utility>

#include "coordinator/http/page/page_files.h"

namespace weft {
namespace {

ExtraRoute Route(const char* path, const char* type, std::string_view (*bytes)()) {
  ExtraRoute route;
  route.path = path;
  route.content_type = type;
  route.needs_key = false;
  route.body = [bytes] { return std::string(bytes()); };
  route.headers = {{"Content-Security-Policy",
                    "default-src 'self'; base-uri 'none'; form-action 'none'; "
                    "frame-ancestors 'none'"},
                   {"Referrer-Policy", "no-referrer"},
                   // A newer program has a newer page.
                   {"Cache-Control", "no-cache"}};
  return route;
}

}  // namespace

std::vector<ExtraRoute> PageRoutes() {
  std::vector<ExtraRoute> routes;
  routes.push_back(Route("/", "text/html; charset=utf-8", PageHtml));
  routes.push_back(Route("/page.css", "text/css; charset=utf-8", PageStyle));
  routes.push_back(Route("/page.js", "text/javascript; charset=utf-8", PageScript));
  routes.push_back(Route("/page.svg", "image/svg+xml", PageIcon));
  return routes;
}

}  // namespace weft
