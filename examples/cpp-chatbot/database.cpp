#include "database.hpp"

namespace
{

using Answer = std::unique_ptr<PGresult, decltype(&PQclear)>;

DatabaseError lost(const PGconn *session)
{
    return {PQerrorMessage(session), "08006"};
}

}  // namespace

Connection::Connection(const std::string &dsn) : session_(PQconnectdb(dsn.c_str()), PQfinish)
{
    if (PQstatus(session_.get()) != CONNECTION_OK) {
        throw lost(session_.get());
    }
}

std::vector<std::string> Connection::strings(const char *sql, std::initializer_list<std::string> parameters)
{
    std::vector<const char *> values;
    for (const std::string &parameter : parameters) {
        values.push_back(parameter.c_str());
    }
    const auto count = static_cast<int>(values.size());
    const Answer answer(PQexecParams(session_.get(), sql, count, nullptr, values.data(), nullptr, nullptr, 0),
                        PQclear);
    if (PQresultStatus(answer.get()) != PGRES_TUPLES_OK) {
        const char *sqlstate = PQresultErrorField(answer.get(), PG_DIAG_SQLSTATE);
        if (sqlstate == nullptr) {
            throw lost(session_.get());
        }
        throw DatabaseError(PQresultErrorMessage(answer.get()), sqlstate);
    }
    std::vector<std::string> found;
    for (int row = 0; row < PQntuples(answer.get()); ++row) {
        found.emplace_back(PQgetvalue(answer.get(), row, 0));
    }
    return found;
}

void Connection::mend()
{
    if (PQstatus(session_.get()) != CONNECTION_OK) {
        PQreset(session_.get());
    }
}

Pool::Pool(const std::string &dsn, std::size_t size)
{
    for (std::size_t n = 0; n < size; ++n) {
        all_.push_back(std::make_unique<Connection>(dsn));
        idle_.push_back(all_.back().get());
    }
}

Connection *Pool::take()
{
    std::unique_lock lock(mutex_);
    returned_.wait(lock, [this] { return !idle_.empty(); });
    Connection *connection = idle_.back();
    idle_.pop_back();
    lock.unlock();
    connection->mend();
    return connection;
}

void Pool::put(Connection *connection)
{
    {
        const std::lock_guard lock(mutex_);
        idle_.push_back(connection);
    }
    returned_.notify_one();
}
