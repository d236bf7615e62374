#include <tidegate.hpp>

#include <iostream>

int main()
{
    try {
        const tidegate::gate db("db", 1);
        std::cout << db.run([&] { return db.in_flight(); }) << " inside, ";
        const auto permit = db.admit();
        db.run([] {});
    } catch (const tidegate::shed_error &shed) {
        std::cout << "then " << shed.what() << '\n';
    } catch (const tidegate::error &error) {
        std::cout << error.what() << '\n';
        return 1;
    }
}
