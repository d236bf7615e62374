package dev.tidegate;

/** A configuration that breaks a rule; nothing was changed. */
public final class ConfigException extends TidegateException {
  private static final long serialVersionUID = 1;

  ConfigException(String message) {
    super(message);
  }
}
