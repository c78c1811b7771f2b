# cmake -DFOLDER=folder -DSCRIPTS=a.js;b.js -DOUTPUT=page_files.cc -P embed_files.cmake
#
# Writes a source with the bytes of page.html, page.css, page.svg and of the scripts, which become one.
include("${CMAKE_CURRENT_LIST_DIR}/../../../common/cmake/PageFiles.cmake")

join_scripts("${SCRIPTS}" script)
file(WRITE "${OUTPUT}.js" "${script}")

set(source "#include \"coordinator/http/page/page_files.h\"\n\nnamespace weft {\nnamespace {\n")
set(functions "")
foreach(pair "Html=${FOLDER}/page.html" "Style=${FOLDER}/page.css" "Script=${OUTPUT}.js" "Icon=${FOLDER}/page.svg")
  string(REGEX MATCH "^([^=]*)=(.*)$" all "${pair}")
  set(name "${CMAKE_MATCH_1}")
  byte_elements("${CMAKE_MATCH_2}" bytes)
  string(APPEND source "\nconstexpr unsigned char k${name}[] = {${bytes}};\n")
  string(APPEND functions "\nstd::string_view Page${name}() {
  return {reinterpret_cast<const char*>(k${name}), sizeof(k${name})};\n}\n")
endforeach()
file(WRITE "${OUTPUT}" "${source}\n}  // namespace\n${functions}\n}  // namespace weft\n")
