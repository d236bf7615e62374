// What must not compile: each MISUSE is one mistake, and 0 is the same program without one.
#include <tidegate.hpp>

int main()
{
    const tidegate::gate db("db", 1);
    auto permit = db.admit();
#if MISUSE == 1
    db.admit();  // a permit that nobody holds
#elif MISUSE == 2
    db.try_admit();  // nor anybody looks at
#elif MISUSE == 3
    auto copy = permit;
#elif MISUSE == 4
    db.set_limit(1.5);
#elif MISUSE == 5
    (void)db.admit(tidegate::priority::critical, 1.0f);
#elif MISUSE == 6
    (void)db.admit(2);  // a number is no priority
#elif MISUSE == 7
    db.try_set_limit(2);  // an error that nobody sees
#elif MISUSE == 8
    db.guard([] {});
#elif MISUSE == 9
    db.set_limit(true);
#elif MISUSE == 10
    tidegate::permit forged(nullptr, 1);
#endif
    permit.release();
}
