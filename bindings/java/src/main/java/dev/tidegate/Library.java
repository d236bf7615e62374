package dev.tidegate;

import java.io.IOException;
import java.io.InputStream;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Locale;
import java.util.Optional;

/**
 * Finds the native library, and makes sure that it speaks this package's version of the interface.
 *
 * <p>It is looked for in this order, and the first that is there is taken: the file that the system
 * property {@code tidegate.library} or the environment variable {@code TIDEGATE_LIBRARY} names; the
 * package's own, {@code /native/SYSTEM-PROCESSOR/} in its jar; the system's, as {@code make
 * install} puts it.
 */
final class Library {
  /** The version of include/tidegate.h that this package was written for. */
  static final int ABI_VERSION = 1;

  private static LibraryException missing;

  private Library() {}

  /**
   * Says each time what is wrong with the library: of a class that could not be initialized the
   * virtual machine says so once, and by an Error.
   */
  static synchronized void require() {
    if (missing != null) {
      throw new LibraryException(missing.getMessage(), missing);
    }
    try {
      Abi.initialize();
    } catch (ExceptionInInitializerError failed) {
      if (failed.getCause() instanceof LibraryException cause) {
        missing = cause;
        throw cause;
      }
      throw failed;
    }
  }

  static SymbolLookup load() {
    String named = System.getProperty("tidegate.library", System.getenv("TIDEGATE_LIBRARY"));
    if (named != null && !named.isEmpty()) {
      return checked(named, "named by tidegate.library or TIDEGATE_LIBRARY", open(named));
    }
    String file = fileName();
    Optional<Path> packaged = packaged(file);
    if (packaged.isPresent()) {
      return checked(packaged.get().toString(), "of the package", open(packaged.get().toString()));
    }
    return checked(file, "of the system", open(file));
  }

  private static String fileName() {
    return System.getProperty("os.name").startsWith("Mac")
        ? "libtidegate.1.dylib"
        : "libtidegate.so.1";
  }

  /** It stays loaded for as long as the process runs. */
  private static SymbolLookup open(String file) {
    try {
      return file.contains("/")
          ? SymbolLookup.libraryLookup(Path.of(file), Arena.global())
          : SymbolLookup.libraryLookup(file, Arena.global());
    } catch (IllegalArgumentException cause) {
      throw new LibraryException(
          "the library %s cannot be loaded; install it (make install) or name one with"
                  .formatted(file)
              + " TIDEGATE_LIBRARY: "
              + cause.getMessage(),
          cause);
    }
  }

  private static SymbolLookup checked(String file, String origin, SymbolLookup library) {
    Optional<MemorySegment> symbol = library.find("tidegate_abi_version");
    if (symbol.isEmpty()) {
      throw new LibraryException("%s (%s) is no tidegate library".formatted(file, origin), null);
    }
    int version;
    try {
      version =
          (int)
              Linker.nativeLinker()
                  .downcallHandle(symbol.get(), FunctionDescriptor.of(ValueLayout.JAVA_INT))
                  .invokeExact();
    } catch (Throwable impossible) {
      throw new AssertionError(impossible);
    }
    if (version != ABI_VERSION) {
      throw new LibraryException(
          ("%s (%s) speaks version %d of the interface, this package speaks %d: install the library"
                  + " that belongs to it")
              .formatted(file, origin, version, ABI_VERSION),
          null);
    }
    return library;
  }

  /** What the jar brings, as a file: a loader needs one. */
  private static Optional<Path> packaged(String file) {
    String system = System.getProperty("os.name").toLowerCase(Locale.ROOT).replace(" ", "");
    String resource = "/native/%s-%s/%s".formatted(system, System.getProperty("os.arch"), file);
    try (InputStream content = Library.class.getResourceAsStream(resource)) {
      if (content == null) {
        return Optional.empty();
      }
      Path copy = Files.createTempFile("tidegate-", "-" + file);
      Files.copy(content, copy, StandardCopyOption.REPLACE_EXISTING);
      copy.toFile().deleteOnExit();
      return Optional.of(copy);
    } catch (IOException cause) {
      throw new LibraryException("the package's own library cannot be written to a file", cause);
    }
  }
}
