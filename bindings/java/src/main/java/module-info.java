/** A load shedder: what it does is in {@link dev.tidegate.Gate}. */
module dev.tidegate {
  // Exceptions of databases are told apart wherever work is done behind a gate.
  requires transitive java.sql;

  exports dev.tidegate;
}
