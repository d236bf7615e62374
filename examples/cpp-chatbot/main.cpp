// A chatbot backend: HTTP in front, PostgreSQL behind, a gate between them.
//
//     DATABASE_URL=postgresql://... cpp-chatbot --limit 20 --connections 10
//
// GET /answer/CONVERSATION is essential, GET /suggestions/CONVERSATION is not. A header `X-Priority` makes a
// request less important than its route, never more: it comes from outside.

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <string>
#include <thread>

#include <sys/socket.h>

#include <httplib.h>
#include <tidegate.hpp>

#include "answers.hpp"
#include "chatbot.hpp"
#include "database.hpp"
#include "doors.hpp"
#include "options.hpp"

namespace
{

// Threads that are free to say no when all that may be inside are. The server's threads are a queue before
// the gate: a request that waits there for a thread is not turned away, it is kept waiting.
constexpr int spare_threads = 8;

constexpr std::chrono::seconds patience_at_the_end(10);

int threads(const Options &options)
{
    return options.door == "none" ? options.threads : options.limit + spare_threads;
}

tidegate::priority priority_of(const httplib::Request &request, tidegate::priority by_route)
{
    const auto asked = tidegate::priority_from(request.get_header_value("X-Priority"));
    return std::max(by_route, asked.value_or(by_route));  // the larger number is the less important
}

void answer_error(const httplib::Request &, httplib::Response &response, std::exception_ptr thrown)
{
    try {
        std::rethrow_exception(thrown);
    } catch (const std::exception &error) {
        std::cerr << "cpp-chatbot: " << error.what() << std::endl;
    }
    answer_problem(response, 500, "about:blank", "Internal Server Error");
}

/// Ends the process at once when standard input ends, whatever it is doing.
void end_with_parent()
{
    std::thread([] {
        while (std::getchar() != EOF) {
        }
        std::_Exit(0);
    }).detach();
}

void serve(const Options &options)
{
    const char *dsn = std::getenv("DATABASE_URL");
    if (dsn == nullptr) {
        throw std::invalid_argument("DATABASE_URL is not set");
    }
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGINT);
    pthread_sigmask(SIG_BLOCK, &ends, nullptr);  // for all threads: this one waits for them below

    Pool pool(dsn, static_cast<std::size_t>(options.connections));
    const Chatbot chatbot(pool, options.depth);
    const auto door = make_door(options.door, options.limit);

    httplib::Server server;
    server.new_task_queue = [&] {
        return new httplib::ThreadPool(static_cast<std::size_t>(threads(options)));
    };
    // An open connection would keep its thread, busy or not.
    server.set_keep_alive_max_count(1);
    server.set_tcp_nodelay(true);
    server.set_exception_handler(answer_error);

    const auto route = [&](const char *path, tidegate::priority priority) {
        server.Get(path, [&, priority](const httplib::Request &request, httplib::Response &response) {
            door->pass(priority_of(request, priority), response, [&] {
                std::string text;
                for (const auto &message : chatbot.context(std::stoi(request.matches[1]))) {
                    text += message + '\n';
                }
                response.set_content(text, "text/plain; charset=utf-8");
            });
        });
    };
    route(R"(/answer/(\d{1,9}))", tidegate::priority::essential);
    route(R"(/suggestions/(\d{1,9}))", tidegate::priority::non_essential);

    // The library lets five connections wait to be accepted, and who finds no room tries again a second
    // later.
    int listener = -1;
    server.set_socket_options([&](int socket) {
        httplib::default_socket_options(socket);
        listener = socket;
    });
    int port = options.port;
    if (port == 0) {
        port = server.bind_to_any_port("127.0.0.1");
    } else if (!server.bind_to_port("127.0.0.1", port)) {
        port = -1;
    }
    if (port < 0) {
        throw std::runtime_error("cannot listen on port " + std::to_string(options.port));
    }
    listen(listener, SOMAXCONN);

    std::thread serving([&] { server.listen_after_bind(); });
    std::cout << "listening on http://127.0.0.1:" << port << std::endl;
    if (options.with_parent) {
        end_with_parent();
    }
    int signal = 0;
    sigwait(&ends, &signal);
    door->drain(patience_at_the_end);
    server.stop();
    serving.join();
}

}  // namespace

int main(int count, char **words)
{
    try {
        serve(Options::parse(count, words));
        return 0;
    } catch (const std::invalid_argument &error) {
        std::cerr << "cpp-chatbot: " << error.what() << std::endl;
        return 2;
    } catch (const std::exception &error) {
        std::cerr << "cpp-chatbot: " << error.what() << std::endl;
        return 1;
    }
}
