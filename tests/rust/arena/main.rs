//! Controllers against the best fixed limit, on a simulated database that gets slower the more is inside.

#[path = "../common/mod.rs"]
mod common;
mod database;
mod play;
mod scenario;
mod table;

#[test]
#[ignore = "minutes long: prints the table"]
fn arena() {
    table::print();
}
