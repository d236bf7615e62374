// The HTTP answers that are not the chatbot's: "come back later", and "that went wrong".
#pragma once

#include <algorithm>
#include <cmath>
#include <optional>
#include <random>
#include <string>
#include <string_view>

#include <httplib.h>
#include <tidegate.hpp>

/// A problem document (RFC 9457) as the answer.
inline void answer_problem(httplib::Response &response, int status, std::string_view type,
                           std::string_view title, std::string_view more = "")
{
    response.status = status;
    response.set_content(R"({"type": ")" + std::string(type) + R"(", "title": ")" + std::string(title) +
                             R"(", "status": )" + std::to_string(status) + std::string(more) + "}",
                         "application/problem+json");
}

/// Whole seconds for a Retry-After, rounded up, so that nobody returns too early: 1 for what is unknown, a
/// minute for what is for ever. Up to half of it again comes on top, or those who were shed together would
/// come back together.
inline int jittered(std::optional<tidegate::seconds> wait)
{
    constexpr double a_minute = 60;
    constexpr double a_day = 24 * 60 * a_minute;
    double seconds = 1;
    if (wait == tidegate::never) {
        seconds = a_minute;
    } else if (wait) {
        seconds = std::clamp(std::ceil(wait->count()), 1.0, a_day);
    }
    const int whole = static_cast<int>(seconds);
    thread_local std::minstd_rand random(std::random_device{}());
    return whole + std::uniform_int_distribution(0, std::max(1, whole / 2))(random);
}

/// 503: come back later. The numbers of the gate stay inside.
inline void answer_busy(httplib::Response &response, std::optional<tidegate::seconds> wait,
                        std::string_view reason)
{
    const std::string seconds = std::to_string(jittered(wait));
    response.set_header("Retry-After", seconds);
    answer_problem(response, 503,
                   "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity",
                   "Request cannot be satisfied due to temporary server capacity constraints",
                   R"(, "reason": ")" + std::string(reason) + R"(", "retry_after": )" + seconds);
}
