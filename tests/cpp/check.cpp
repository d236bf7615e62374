#include "check.hpp"

#include <iostream>
#include <utility>
#include <vector>

namespace
{

auto &tests()
{
    static std::vector<std::pair<const char *, void (*)()>> tests;
    return tests;
}

}  // namespace

check::Registered::Registered(const char *name, void (*body)())
{
    tests().emplace_back(name, body);
}

int main()
{
    int failed = 0;
    for (const auto &[name, body] : tests()) {
        try {
            body();
            std::cout << "ok       " << name << std::endl;  // flushed: a test may fork
        } catch (const std::exception &error) {
            std::cout << "    " << error.what() << "\nFAILED   " << name << std::endl;
            ++failed;
        }
    }
    return failed > 0 || tests().empty() ? 1 : 0;
}
