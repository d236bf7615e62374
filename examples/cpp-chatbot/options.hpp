// The command line: `--name value`, each at most once.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>

struct Options {
    int port = 8080;
    /// tidegate, semaphore or none.
    std::string door = "tidegate";
    /// Of the gate or the semaphore.
    int limit = 20;
    /// Sessions of the database.
    int connections = 10;
    /// Requests at work at once; with a limit in place a few more, which only say no.
    int threads = 40;
    /// How many messages are searched for context.
    int depth = 100'000;
    /// Whether to end at once when standard input ends: for a parent process.
    bool with_parent = false;

    static Options parse(int count, char **words)
    {
        Options options;
        for (int n = 1; n < count; ++n) {
            const std::string_view name = words[n];
            if (name == "--with-parent") {
                options.with_parent = true;
                continue;
            }
            if (n + 1 == count) {
                throw std::invalid_argument(std::string(name) + " needs a value");
            }
            const std::string_view value = words[++n];
            if (name == "--door") {
                options.door = value;
            } else {
                options.number(name) = whole(name, value);
            }
        }
        return options;
    }

private:
    int &number(std::string_view name)
    {
        if (name == "--port")
            return port;
        if (name == "--limit")
            return limit;
        if (name == "--connections")
            return connections;
        if (name == "--threads")
            return threads;
        if (name == "--depth")
            return depth;
        throw std::invalid_argument("unknown option " + std::string(name));
    }

    static int whole(std::string_view name, std::string_view text)
    {
        int number = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
        const int least = name == "--port" ? 0 : 1;
        if (error != std::errc() || end != text.data() + text.size() || number < least) {
            throw std::invalid_argument(std::string(name) + " must be a whole number from " +
                                        std::to_string(least) + ", got " + std::string(text));
        }
        return number;
    }
};
