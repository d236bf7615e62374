#include "check.hpp"

#include <iostream>
#include <utility>
#include <vector>

namespace {

auto &tests() {
    static std::vector<std::pair<const char *, void (*)()>> tests;
    return tests;
}

}  // namespace

check::Registered::Registered(const char *name, void (*body)()) {
    tests().emplace_back(name, body);
}

int main() {
    int failed = 0;
    for (const auto &[name, body] : tests()) {
        std::cout << name << std::endl;
        try {
            body();
        } catch (const std::exception &error) {
            std::cout << "    " << error.what() << '\n';
            ++failed;
        }
    }
    std::cout << tests().size() << " tests, " << failed << " failed\n";
    return failed == 0 && !tests().empty() ? 0 : 1;
}
