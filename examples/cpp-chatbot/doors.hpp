// The arms of the demo. Each is a door that a request passes before it takes a connection; none ever waits.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <semaphore>
#include <stdexcept>
#include <string>

#include <httplib.h>
#include <tidegate.hpp>

#include "answers.hpp"
#include "database.hpp"

using Work = std::function<void()>;

class Door
{
public:
    virtual ~Door() = default;

    /// Does the work of a request, or answers that it should come back later.
    virtual void pass(tidegate::priority priority, httplib::Response &response, const Work &work) = 0;

    /// Lets nobody in any more, and waits for those inside, for so long.
    virtual void drain(std::chrono::seconds) {}
};

/// The gate: the last quarter of the limit is kept for essential requests.
class GateDoor : public Door
{
public:
    explicit GateDoor(int limit) : gate_("db", limit) {}

    void pass(tidegate::priority priority, httplib::Response &response, const Work &work) override
    {
        auto permit = gate_.try_admit(priority);
        if (!permit) {
            const tidegate::shed &shed = permit.error();
            answer_busy(response, shed.retry_after(), to_string(shed.reason().value()));
            return;
        }
        try {
            work();
        } catch (const DatabaseError &error) {
            permit->set_outcome(error.overload() ? tidegate::outcome::overload : tidegate::outcome::success);
            throw;
        }
    }

    void drain(std::chrono::seconds patience) override { gate_.drain(patience); }

private:
    tidegate::gate gate_;
};

/// A plain counter: at most `limit` inside, whoever comes first.
class SemaphoreDoor : public Door
{
public:
    explicit SemaphoreDoor(int limit) : places_(limit) {}

    void pass(tidegate::priority, httplib::Response &response, const Work &work) override
    {
        if (!places_.try_acquire()) {
            answer_busy(response, std::nullopt, "limit");
            return;
        }
        const Leave leave{places_};
        work();
    }

private:
    struct Leave {
        std::counting_semaphore<> &places;
        ~Leave() { places.release(); }
    };

    std::counting_semaphore<> places_;
};

/// As backends are by default: everybody may come in.
class OpenDoor : public Door
{
public:
    void pass(tidegate::priority, httplib::Response &, const Work &work) override { work(); }
};

inline std::unique_ptr<Door> make_door(const std::string &name, int limit)
{
    if (name == "tidegate") {
        return std::make_unique<GateDoor>(limit);
    }
    if (name == "semaphore") {
        return std::make_unique<SemaphoreDoor>(limit);
    }
    if (name == "none") {
        return std::make_unique<OpenDoor>();
    }
    throw std::invalid_argument("--door must be tidegate, semaphore or none, got " + name);
}
