// PostgreSQL through libpq: sessions, and a pool of them.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include <libpq-fe.h>

/// What the database said instead of an answer.
class DatabaseError : public std::runtime_error
{
public:
    DatabaseError(const std::string &message, std::string sqlstate)
        : std::runtime_error(message), sqlstate_(std::move(sqlstate))
    {
    }

    /// Whether it said that it is too busy: a statement timed out, or there was no room for a session.
    bool overload() const { return sqlstate_ == "57014" || sqlstate_ == "53300"; }

private:
    std::string sqlstate_;
};

/// One session.
class Connection
{
public:
    explicit Connection(const std::string &dsn);

    /// The first column of what `sql` finds.
    std::vector<std::string> strings(const char *sql, std::initializer_list<std::string> parameters);

    /// Makes a session that was lost anew, as far as that can be had.
    void mend();

private:
    std::unique_ptr<PGconn, decltype(&PQfinish)> session_;
};

/// As many sessions as there are for all threads. Who finds none waits for one.
class Pool
{
public:
    Pool(const std::string &dsn, std::size_t size);

    /// Calls `use` with a session.
    template <class Use>
    auto with(Use use)
    {
        const Lease lease(*this);
        return use(*lease.connection);
    }

private:
    struct Lease {
        explicit Lease(Pool &from) : pool(from), connection(from.take()) {}
        Lease(const Lease &) = delete;
        Lease &operator=(const Lease &) = delete;
        ~Lease() { pool.put(connection); }

        Pool &pool;
        Connection *connection;
    };

    Connection *take();
    void put(Connection *connection);

    std::vector<std::unique_ptr<Connection>> all_;
    std::mutex mutex_;
    std::condition_variable returned_;
    std::vector<Connection *> idle_;
};
