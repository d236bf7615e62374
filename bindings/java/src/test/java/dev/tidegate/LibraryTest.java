package dev.tidegate;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * The library is found, and one that is not this package's is refused, in processes of their own.
 */
class LibraryTest {
  @TempDir Path folder;

  /** What a program says that uses the package. */
  public static final class Program {
    private Program() {}

    /** Prints what comes of it. */
    public static void main(String[] args) {
      System.out.println(said() + "; " + said());
    }

    private static String said() {
      try {
        return "works, " + Gate.of("db", 3).limit();
      } catch (LibraryException e) {
        return e.toString();
      }
    }
  }

  private static String classes(Class<?> of) throws Exception {
    return Path.of(of.getProtectionDomain().getCodeSource().getLocation().toURI()).toString();
  }

  private String said(String library, String... classPath) throws Exception {
    return ran(
        library,
        "--enable-native-access=ALL-UNNAMED",
        "-cp",
        String.join(":", classPath) + ":" + classes(Gate.class) + ":" + classes(LibraryTest.class),
        Program.class.getName());
  }

  private static String ran(String library, String... arguments) throws Exception {
    List<String> command = new ArrayList<>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    command.addAll(List.of(arguments));
    ProcessBuilder builder = new ProcessBuilder(command).redirectErrorStream(true);
    builder.environment().remove("TIDEGATE_LIBRARY");
    if (library != null) {
      builder.environment().put("TIDEGATE_LIBRARY", library);
    }
    Process process = builder.start();
    String text = new String(process.getInputStream().readAllBytes());
    process.waitFor();
    return text.strip();
  }

  private String compiled(String name, String source) throws IOException, InterruptedException {
    Path file = folder.resolve(name + ".c");
    Path library = folder.resolve(name + ".so");
    Files.writeString(file, source);
    Process compiler;
    try {
      compiler =
          new ProcessBuilder("cc", "-shared", "-fPIC", file.toString(), "-o", library.toString())
              .inheritIO()
              .start();
    } catch (IOException none) {
      assumeTrue(false, "no C compiler (cc) to build another library with");
      throw none;
    }
    assertEquals(0, compiler.waitFor());
    return library.toString();
  }

  @Test
  void theLibraryThatTheEnvironmentNames() throws Exception {
    assertEquals("works, 3; works, 3", said(System.getenv("TIDEGATE_LIBRARY")));
  }

  @Test
  void theLibraryThatTheJarBrings() throws Exception {
    String system = System.getProperty("os.name").toLowerCase().replace(" ", "");
    Path packaged = folder.resolve("native/" + system + "-" + System.getProperty("os.arch"));
    Files.createDirectories(packaged);
    Files.copy(Path.of(System.getenv("TIDEGATE_LIBRARY")), packaged.resolve("libtidegate.so.1"));
    assertEquals("works, 3; works, 3", said(null, folder.toString()));
  }

  /**
   * A module that needs this one and nothing more: exceptions of databases are told apart there,
   * too.
   */
  @Test
  void aModuleThatNeedsNothingElse() throws Exception {
    Path source = folder.resolve("app/Main.java");
    Files.createDirectories(source.getParent());
    Files.writeString(folder.resolve("module-info.java"), "module app { requires dev.tidegate; }");
    Files.writeString(
        source,
        """
        package app;
        public class Main {
          public static void main(String[] args) throws Exception {
            try {
              dev.tidegate.Gate.of("db", 2).call(() -> { throw new Exception("its own"); });
            } catch (Throwable thrown) {
              System.out.println(thrown);
            }
          }
        }
        """);
    String module = classes(Gate.class);
    assertEquals(
        0,
        ToolProvider.getSystemJavaCompiler()
            .run(
                null,
                null,
                null,
                "-p",
                module,
                "-d",
                folder.resolve("out").toString(),
                folder.resolve("module-info.java").toString(),
                source.toString()));
    assertEquals(
        "java.lang.Exception: its own",
        ran(
            System.getenv("TIDEGATE_LIBRARY"),
            "--enable-native-access=dev.tidegate",
            "-p",
            module + ":" + folder.resolve("out"),
            "-m",
            "app/app.Main"));
  }

  @Test
  void aFileThatIsNotThere() throws Exception {
    String said = said("/no/such/libtidegate.so");
    assertTrue(
        said.contains("LibraryException: the library /no/such/libtidegate.so cannot be loaded"),
        said);
    assertTrue(said.contains("make install"), said);
    String[] twice = said.split("; dev.tidegate.", 2);
    assertEquals(twice[0], "dev.tidegate." + twice[1], "the same at each use");
  }

  @Test
  void aLibraryOfAnotherVersion() throws Exception {
    String library = compiled("other", "unsigned tidegate_abi_version(void) { return 7; }");
    String said = said(library);
    assertTrue(
        said.endsWith(
            "speaks version 7 of the interface, this package speaks 1: install the library that"
                + " belongs to it"),
        said);
  }

  @Test
  void aLibraryThatIsNoTidegate() throws Exception {
    String said = said(compiled("none", "int something_else(void) { return 7; }"));
    assertTrue(said.endsWith("is no tidegate library"), said);
  }
}
