// Between the messages of cpp-httplib and ours.
#pragma once

#include <httplib.h>

#include <cstdint>
#include <string>

#include "common/http/http_message.h"

namespace weft {

// Bytes of a body that a request announces; -1: nobody knows.
int64_t AnnouncedBytes(const httplib::Request& request);

// Whether it has a body of known or unknown length.
bool SaysLength(const httplib::Request& request);

// What a request is refused for with 400 before anything else is looked at; null: nothing.
const char* HeadFault(const httplib::Request& request);

// The request without its body.
HttpRequest HeadOf(const httplib::Request& request, std::string id);

// What `reply` says; a streamed one is written after this.
void SetReply(HttpReply reply, const httplib::Request& request, httplib::Response& response);

}  // namespace weft
