package dev.tidegate;

import java.net.SocketTimeoutException;
import java.nio.channels.ClosedByInterruptException;
import java.sql.SQLException;
import java.sql.SQLTimeoutException;
import java.util.concurrent.CancellationException;
import java.util.concurrent.TimeoutException;
import java.util.regex.Pattern;

/** What an exception says of the resource behind a gate. */
public final class Outcomes {
  private Outcomes() {}

  /** Too little of something, starting, or gave up waiting for a lock; as PostgreSQL has it. */
  private static final Pattern OVERLOADED = Pattern.compile("53...|57P03|55P03");

  private static final String QUERY_CANCELED = "57014";

  /** No chain of causes is longer, but one that bites its tail. */
  private static final int CAUSES = 32;

  /**
   * A timeout, and a database that says it has too little of something, is {@code OVERLOAD}; what
   * was cancelled or interrupted, or shed by another gate, is {@code IGNORE}. Anything else is
   * {@code SUCCESS}, since the resource answered. What wraps an exception is what its cause is.
   */
  public static Outcome of(Throwable thrown) {
    Throwable each = thrown;
    for (int count = 0; each != null && count < CAUSES; count++, each = each.getCause()) {
      Outcome outcome = ofThis(each);
      if (outcome != Outcome.SUCCESS) {
        return outcome;
      }
    }
    return Outcome.SUCCESS;
  }

  private static Outcome ofThis(Throwable thrown) {
    return switch (thrown) {
      case Shed _ -> Outcome.IGNORE;
      case InterruptedException _ -> Outcome.IGNORE;
      case CancellationException _ -> Outcome.IGNORE;
      case ClosedByInterruptException _ -> Outcome.IGNORE;
      case TimeoutException _ -> Outcome.OVERLOAD;
      case SocketTimeoutException _ -> Outcome.OVERLOAD;
      case SQLException e -> ofDatabase(e);
      // Of a module that need not be there.
      default ->
          thrown.getClass().getName().startsWith("java.net.http.Http")
                  && thrown.getClass().getName().endsWith("TimeoutException")
              ? Outcome.OVERLOAD
              : Outcome.SUCCESS;
    };
  }

  private static Outcome ofDatabase(SQLException thrown) {
    if (thrown instanceof SQLTimeoutException) {
      return Outcome.OVERLOAD;
    }
    String state = thrown.getSQLState() == null ? "" : thrown.getSQLState();
    if (state.equals(QUERY_CANCELED)) {
      return String.valueOf(thrown.getMessage()).contains("timeout")
          ? Outcome.OVERLOAD
          : Outcome.IGNORE;
    }
    return OVERLOADED.matcher(state).matches() ? Outcome.OVERLOAD : Outcome.SUCCESS;
  }
}
