package dev.tidegate;

/** The base of what this package throws of its own accord. */
public class TidegateException extends RuntimeException {
  private static final long serialVersionUID = 1;

  TidegateException(String message) {
    super(message);
  }

  TidegateException(String message, Throwable cause) {
    super(message, cause);
  }

  /** For a shed, which needs neither a stack nor suppressed exceptions. */
  TidegateException() {
    super(null, null, false, false);
  }
}
