package dev.tidegate;

/** The native library is missing, or of another version. */
public final class LibraryException extends TidegateException {
  private static final long serialVersionUID = 1;

  LibraryException(String message, Throwable cause) {
    super(message, cause);
  }
}
