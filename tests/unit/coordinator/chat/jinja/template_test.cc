// What a template may not do, and how its errors read. That it renders like Jinja is the subject of
// tests/integration/jinja_test.py.
#include "coordinator/chat/jinja/template.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "common/base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_seed.h"
#include "tests/unit/coordinator/chat/jinja/template_check.h"

namespace weft::jinja {
namespace {

using ::testing::HasSubstr;

std::tm Now() {
  std::tm now = {};
  now.tm_year = 124;
  now.tm_mon = 6;
  now.tm_mday = 26;
  now.tm_wday = 5;
  return now;
}

absl::StatusOr<std::string> Render(std::string_view source, const Limits& limits = {},
                                   const nlohmann::ordered_json& variables = {{"n", 7}}) {
  auto parsed = Template::Parse(source, limits);
  if (!parsed.ok()) return parsed.status();
  return parsed->Render(variables, Now());
}

std::string Repeat(std::string_view text, int count) {
  std::string out;
  for (int i = 0; i < count; ++i) out += text;
  return out;
}

TEST(Template, Errors_NameLineAndCause) {
  const struct {
    std::string_view source, message;
  } kCases[] = {
      {"a\n{{ x.y }}", "line 2: cannot take 'y' of what is undefined: there is no variable 'x'"},
      {"{{ n.x.y }}", "'int' has no 'x'"},
      {"\n\n{% if %}", "line 3: unexpected '%}', want an expression"},
      {"{% for x in n %}{% endfor %}", "line 1: cannot iterate over 'int'"},
      {"{{ raise_exception('no ' ~ n) }}", "line 1: the template refuses: no 7"},
      {"a\r\nb{% nope %}", "line 2: 'nope' is no statement known here"},
      {"{{ n|nope }}", "line 1: there is no filter 'nope'"},
      {"{{ n is nope }}", "line 1: there is no test 'nope'"},
      {"{{ [].append(1) }}", "append() would change a value"},
      {"{{ 9223372036854775807 + 1 }}", "an integer does not fit into 64 bits"},
      {"{{ -9223372036854775807 - 2 }}", "an integer does not fit into 64 bits"},
      {"{{ 2 ** 64 }}", "an integer does not fit into 64 bits"},
      {"{{ 9223372036854775808 }}", "want an integer of 64 bits"},
      {"{% for x in n recursive %}{% endfor %}", "want a loop that is not recursive"},
      {"{% macro m(a) %}{% endmacro %}\n{{ m(b=1) }}", "line 2: macro 'm' has no parameter 'b'"},
      {"{% if n %}", "unexpected the end of the template"},
      {"\xff", "the template is not UTF-8"},
      {"{{ '\\ud800' }}", "an escape in a text is no character"},
      {"{{ strftime_now('%Q') }}", "unknown"},
  };
  for (const auto& test : kCases) {
    EXPECT_THAT(Render(test.source),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(std::string(test.message))))
        << test.source;
  }
}

TEST(Template, DeepSyntax_IsRefused) {
  const std::pair<std::string_view, std::string_view> kBrackets[] = {
      {"(", ")"},   {"[", "]"},  {"-", ""},     {"not ", ""},
      {"{1:", "}"}, {"n[", "]"}, {"n.f(", ")"}, {"n if n else ", ""}};
  for (const auto& [open, close] : kBrackets) {
    EXPECT_THAT(Render("{{ " + Repeat(open, 20000) + "n" + Repeat(close, 20000) + " }}"),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("inside each other")))
        << open;
  }
  for (const std::string_view link :
       {"+1", "*1", "|abs", ".x", "[0]", "()", " or 1", " and 1", "**1", " if 1"}) {
    EXPECT_THAT(Render("{{ n" + Repeat(link, 20000) + " }}"),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("inside each other")))
        << link;
  }
  for (const std::string_view block :
       {"{% if n %}", "{% for x in n %}", "{% macro m() %}", "{% set x %}", "{% filter upper %}",
        "{% with %}", "{% call m() %}", "{% generation %}"}) {
    EXPECT_THAT(Render(Repeat(block, 5000)),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("inside each other")))
        << block;
  }
  EXPECT_THAT(Render("{% set " + Repeat("(", 20000)), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(Template, EndlessOrHuge_EndsAtALimit) {
  // NOLINTBEGIN(bugprone-suspicious-missing-comma): long templates go over several lines.
  const std::string kHostile[] = {
      "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
      "{% macro f(x) %}{{ g(x) }}{% endmacro %}{% macro g(x) %}{{ f(x) }}{% endmacro %}{{ f(1) }}",
      "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
      "{{ range(1000000000) }}",
      "{{ 'a' * 100000000000 }}",
      "{{ [0] * 10000000000 }}",
      "{% set s = namespace(x='aaaaaaaaaaaaaaaa') %}{% for i in range(99) %}{% set s.x = s.x + s.x "
      "%}{% endfor %}",
      "{% set s = namespace(x='aaaaaaaaaaaaaaaa') %}{% for i in range(99) %}{% set s.x = s.x ~ s.x "
      "%}{% endfor %}",
      "{% set s = namespace(x=['a', 'a']) %}{% for i in range(99) %}{% set s.x = [s.x, s.x] %}"
      "{% endfor %}{{ s.x }}",
      "{% set s = namespace(x=['a', 'a']) %}{% for i in range(90) %}{% set s.x = [s.x, s.x] %}"
      "{% endfor %}{{ s.x|tojson }}",
      "{% set s = namespace(x=['a'], y=['a']) %}{% for i in range(90) %}{% set s.x = [s.x, s.x] %}"
      "{% set s.y = [s.y, s.y] %}{% endfor %}{{ s.x == s.y }}",
      "{% set s = namespace(x=('a',)) %}{% for i in range(90) %}{% set s.x = (s.x, s.x) %}"
      "{% endfor %}{{ {s.x: 1} }}",
      "{% set s = namespace(x=[]) %}{% for i in range(99999) %}{% set s.x = [s.x] %}{% endfor %}",
      "{% set s = namespace() %}{% set s.x = s %}{{ s }}",
      "{% set s = namespace() %}{% set s.x = [s] %}{{ s.x }}",
      "{% for i in range(99999) %}{{ 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa' * 1000 }}"
      "{% endfor %}",
      "{{ 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'.replace('', 'b' * 10000000) }}",
      "{{ ('a' * 1000000).replace('a', 'b' * 1000) }}",
      "{{ ('a' * 10000000)|list }}",
      "{{ ('a ' * 10000000).split() }}",
      "{{ ('\\n' * 1000000)|indent('x' * 1000) }}",
      "{{ ('a' * 100000)|list|join('b' * 10000) }}",
      "{{ 'a'.center(10000000000) }}",
      "{{ '1'.zfill(10000000000) }}",
      "{{ '%1000000000d' % 1 }}",
      "{{ [[[[]]]]|tojson(indent=100000000) }}",
      "{% set s = namespace(f=none) %}{% for i in range(99999) %}{% macro m(f=s.f) %}{% endmacro %}"
      "{% set s.f = m %}{% for j in range(99) %}{{ j }}{% endfor %}{% endfor %}",
      "{% for i in range(99999) %}{% set x = namespace(a=range(9999)) %}{% endfor %}",
      "{{ range(99999)|list|unique|list }}",
      "{% set x = range(9999)|list %}{% for i in x %}{{ i in x and x == x[:] }}{% endfor %}"
      "{% for i in x %}{{ -1 in x }}{{ -2 in x }}{% endfor %}",
  };
  // NOLINTEND(bugprone-suspicious-missing-comma)
  Limits limits;  // a tenth of what templates have, for the sake of the sanitizers
  limits.steps /= 10;
  limits.memory_bytes /= 10;
  for (const std::string& source : kHostile) {
    EXPECT_THAT(Render(source, limits), StatusIs(absl::StatusCode::kInvalidArgument)) << source;
  }
}

TEST(Template, LongLivedCycles_AreTakenApart) {
  // The address sanitizer's leak check is what fails here.
  EXPECT_OK(
      Render("{% set s = namespace() %}{% set s.x = [s, {'s': s}] %}{% for i in [1, 2] %}"
             "{% set s.l = loop %}{{ loop.changed(loop, s) }}{% endfor %}{{ s.l.index }}"
             "{% macro m() %}{{ m }}{% endmacro %}{% set s.m = m %}{{ m() }}"));
  EXPECT_THAT(Render("{% set s = namespace() %}{% for i in [1, 2] %}{% set s.l = loop %}"
                     "{{ loop.changed(loop) }}{{ nope.x }}{% endfor %}"),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(Template, Range_LimitIsThatOfTheSandbox) {
  EXPECT_OK(Render("{{ range(100000)|length }}"));
  EXPECT_THAT(Render("{{ range(100001)|length }}"), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(Render("{{ range(9000000000000000000, 9000000000000000001) }}"),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(Template, Variables_DeepOrBad_AreRefused) {
  nlohmann::ordered_json deep = 1;
  for (int i = 0; i < 150; ++i) deep = nlohmann::ordered_json::array({deep});
  EXPECT_THAT(Render("x", {}, {{"deep", deep}}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("inside each other")));
  EXPECT_THAT(Render("x", {}, {{"bad", "\xff"}}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("UTF-8")));
  EXPECT_THAT(Render("x", {}, nlohmann::ordered_json::array()),
              StatusIs(absl::StatusCode::kInvalidArgument));
  // Beyond 64 bits they are floats, as a JSON parser without large integers has them.
  EXPECT_EQ(*Render("{{ n }}", {}, {{"n", 18446744073709551615ULL}}), "1.8446744073709552e+19");
}

TEST(Template, Limits_AreTheCallers) {
  Limits limits;
  limits.template_bytes = 10;
  EXPECT_THAT(Render("01234567890", limits), StatusIs(absl::StatusCode::kInvalidArgument));
  limits = {};
  limits.output_bytes = 10;
  EXPECT_OK(Render("0123456789", limits));
  EXPECT_THAT(Render("01234567890", limits),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("10 bytes of output")));
  limits = {};
  limits.steps = 100;
  EXPECT_THAT(Render("{% for x in range(200) %}{{ x }}{% endfor %}", limits),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("100 steps")));
}

std::vector<std::string> Corpus() {
  std::vector<std::string> sources;
  const std::filesystem::path data = std::getenv("WEFT_TEST_DATA");
  for (const auto& entry : std::filesystem::directory_iterator(data / "chat" / "templates")) {
    std::ostringstream text;
    text << std::ifstream(entry.path(), std::ios::binary).rdbuf();
    sources.push_back(text.str());
  }
  return sources;
}

size_t Below(Random& random, size_t bound) { return random.Next() % bound; }

TEST(Template, MutatedTemplates_NeverCrash) {
  const std::vector<std::string> sources = Corpus();
  ASSERT_GT(sources.size(), 10u);
  Random random(TestSeed(1));
  const std::string_view kPieces[] = {"{%", "%}", "{{", "}}", "-",    "'",    "(",
                                      ")",  "[",  "]",  "|",  " if ", " in ", " is ",
                                      "~",  "+",  ".",  ",",  "0",    "None"};
  const uint64_t count = TestCount(3000);
  for (uint64_t i = 0; i < count; ++i) {
    std::string source = sources[Below(random, sources.size())];
    const uint64_t changes = 1 + Below(random, 4);
    for (uint64_t change = 0; change < changes; ++change) {
      const size_t at = Below(random, source.size());
      switch (Below(random, 3)) {
        case 0:
          source.erase(at, Below(random, 20));
          break;
        case 1:
          source.insert(at, kPieces[Below(random, std::size(kPieces))]);
          break;
        default:
          source.insert(at, source.substr(Below(random, source.size()), Below(random, 40)));
      }
      if (source.empty()) break;
    }
    CheckTemplate(source);
  }
}

}  // namespace
}  // namespace weft::jinja
