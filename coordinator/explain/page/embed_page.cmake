# cmake -DPAGE=page.html -DSTYLE=page.css -DSCRIPTS=a.js;b.js -DOUTPUT=page_bytes.cc -P embed_page.cmake
#
# Puts style and scripts into the page, with their hashes in its Content-Security-Policy, and writes a source with its
# bytes.
include("${CMAKE_CURRENT_LIST_DIR}/../../../common/cmake/PageFiles.cmake")

# The SHA-256 of `text` in base64, as a policy wants it.
function(policy_hash text result)
  string(SHA256 hex "${text}")
  set(alphabet "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
  set(base64 "")
  foreach(at RANGE 0 60 6)  # three bytes each; the last two and no more
    string(SUBSTRING "${hex}00" ${at} 6 part)
    math(EXPR bits "0x${part}")
    foreach(shift 18 12 6 0)
      math(EXPR index "(${bits} >> ${shift}) & 63")
      string(SUBSTRING "${alphabet}" ${index} 1 letter)
      string(APPEND base64 "${letter}")
    endforeach()
  endforeach()
  string(SUBSTRING "${base64}" 0 43 base64)
  set(${result} "sha256-${base64}=" PARENT_SCOPE)
endfunction()

file(READ "${PAGE}" page)
file(READ "${STYLE}" style)
join_scripts("${SCRIPTS}" script)

policy_hash("${style}" style_hash)
policy_hash("${script}" script_hash)
foreach(name style_hash script_hash style script)
  string(TOUPPER "@${name}@" mark)
  string(REPLACE "${mark}" "${${name}}" page "${page}")
endforeach()

file(WRITE "${OUTPUT}.html" "${page}")
byte_elements("${OUTPUT}.html" bytes)
file(WRITE "${OUTPUT}" "#include \"coordinator/explain/page_bytes.h\"

namespace weft {
namespace {

constexpr unsigned char kBytes[] = {${bytes}};

}  // namespace

std::string_view PageBytes() {
  return {reinterpret_cast<const char*>(kBytes), sizeof(kBytes)};
}

}  // namespace weft
")
