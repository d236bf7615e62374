// The application: what the backend does for one request.
#pragma once

#include <algorithm>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "database.hpp"

/// A chatbot that looks for context in the first `depth` messages ever written.
class Chatbot
{
public:
    Chatbot(Pool &pool, int depth) : pool_(pool), depth_(depth) {}

    /// What a language model would be given to answer the conversation's last message: one history read and
    /// one context search, which is the expensive query.
    std::vector<std::string> context(int conversation) const
    {
        return pool_.with([&](Connection &connection) {
            auto found = connection.strings(history_, {std::to_string(conversation)});
            if (found.empty()) {
                return found;
            }
            const auto terms = search_terms(found.front());
            auto similar = connection.strings(
                search_, {std::to_string(depth_), like(terms.at(0)), like(terms.at(1)), like(terms.at(2))});
            std::move(similar.begin(), similar.end(), std::back_inserter(found));
            return found;
        });
    }

private:
    static constexpr const char *history_ =
        "SELECT body FROM message WHERE conversation = $1 ORDER BY id DESC LIMIT 10";
    static constexpr const char *search_ =
        "SELECT body FROM message WHERE id <= $1 "
        "ORDER BY (body LIKE $2)::int + (body LIKE $3)::int + (body LIKE $4)::int DESC, id DESC LIMIT 5";

    /// The three longest words, which say most about what a message is about.
    static std::vector<std::string> search_terms(const std::string &message)
    {
        std::istringstream text(message);
        std::vector<std::string> words{std::istream_iterator<std::string>(text), {}};
        std::stable_sort(words.begin(), words.end(),
                         [](const auto &a, const auto &b) { return a.size() > b.size(); });
        words.resize(3);
        return words;
    }

    static std::string like(const std::string &term) { return "%" + term + "%"; }

    Pool &pool_;
    int depth_;
};
