// Permits and forks. A program of its own: what a child leaves behind is no leak, whatever valgrind says.
#include "check.hpp"

#include <memory>

#include <sys/wait.h>
#include <unistd.h>

using namespace tidegate;

TEST(after_a_fork_the_childs_copy_is_inert)
{
    const gate db("db", 2);
    auto permit = std::make_unique<tidegate::permit>(db.admit());
    const pid_t child = fork();
    if (child == 0) {
        const bool empty = db.in_flight() == 0;
        const bool inert = !permit->release();
        const bool admits = db.try_admit().has_value();
        _exit(empty && inert && admits && db.in_flight() == 0 ? 0 : 1);
    }
    int how = -1;
    CHECK_EQ(waitpid(child, &how, 0), child);
    CHECK(WIFEXITED(how) && WEXITSTATUS(how) == 0);
    CHECK_EQ(db.in_flight(), 1);
    CHECK(permit->release());
    check::at_rest(db);
}
