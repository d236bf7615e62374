package dev.tidegate;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.ref.Reference;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;

/** The gates of a configuration file, by name, and its classifier: docs/configuration.md. */
public final class Gates {
  private static final int TEXT_BYTES = 1 << 16;
  private static final int WHY_BYTES = 4096;

  /** The native gates, as long as these or one of theirs is in use. */
  private static final class Owner {
    final MemorySegment pointer;

    Owner(MemorySegment pointer) {
      this.pointer = pointer;
      Handle.CLEANER.register(this, () -> Abi.freeGates(pointer));
    }
  }

  /**
   * What the rules say of a request.
   *
   * @param priority its priority; empty where they leave it open
   * @param why a sentence with the rule that decided
   */
  public record Classified(Optional<Priority> priority, String why) {}

  private final Owner owner;
  private final Map<String, Gate> gates = new ConcurrentHashMap<>();

  private Gates(Owner owner) {
    this.owner = owner;
  }

  /**
   * Reads a file.
   *
   * @throws ConfigException with everything that is wrong with it, one problem a line
   */
  public static Gates open(Path path) {
    Library.require();
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment file = Text.withoutNul(arena, path.toString(), "path");
      MemorySegment made = arena.allocate(ADDRESS);
      MemorySegment why = arena.allocate(TEXT_BYTES);
      return made(Abi.OPEN.on(file, made, why, why.byteSize()), made, why);
    }
  }

  /**
   * Reads a text, which messages call {@code file}.
   *
   * @throws ConfigException with everything that is wrong with it, one problem a line
   */
  public static Gates parse(String text, String file) {
    Library.require();
    try (Arena arena = Arena.ofConfined()) {
      Text content = Text.of(arena, text, "text");
      MemorySegment name = Text.withoutNul(arena, file, "file");
      MemorySegment made = arena.allocate(ADDRESS);
      MemorySegment why = arena.allocate(TEXT_BYTES);
      return made(
          Abi.OPEN_TEXT.on(content.data(), content.length(), name, made, why, why.byteSize()),
          made,
          why);
    }
  }

  private static Gates made(int status, MemorySegment made, MemorySegment why) {
    if (status != 0) {
      throw Abi.exception(status, why.getString(0));
    }
    return new Gates(new Owner(made.get(ADDRESS, 0)));
  }

  /**
   * The gate of a name, the same object at every call.
   *
   * @throws IllegalArgumentException where the file has none
   */
  public Gate get(String name) {
    try (Arena arena = Arena.ofConfined()) {
      Text text = Text.of(arena, name, "name");
      MemorySegment found = arena.allocate(ADDRESS);
      int status = Abi.FIND.on(owner.pointer, text.data(), text.length(), found);
      Reference.reachabilityFence(this);
      if (status != 0) {
        throw Abi.exception(status, "the file has no gate \"" + name + "\"");
      }
      MemorySegment pointer = found.get(ADDRESS, 0);
      return gates.computeIfAbsent(name, _ -> new Gate(Handle.of(owner, pointer), null));
    }
  }

  /** The names of the gates that the file has, in its order. */
  public List<String> names() {
    List<String> names = new ArrayList<>();
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment gate = arena.allocate(ADDRESS);
      while (Abi.GATE_AT.on(owner.pointer, (long) names.size(), gate) == 0) {
        names.add(Abi.name(gate.get(ADDRESS, 0)));
      }
    }
    Reference.reachabilityFence(this);
    return names;
  }

  /**
   * Reads the file again and makes its gates what it says now.
   *
   * @return what was changed, in words
   * @throws ConfigException where it cannot be used; then nothing was changed
   */
  public List<String> reload() {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment report = arena.allocate(TEXT_BYTES);
      return changed(Abi.RELOAD.on(owner.pointer, report, report.byteSize()), report);
    }
  }

  /**
   * The same from a text.
   *
   * @throws ConfigException where it cannot be used; then nothing was changed
   */
  public List<String> reload(String text) {
    try (Arena arena = Arena.ofConfined()) {
      Text content = Text.of(arena, text, "text");
      MemorySegment report = arena.allocate(TEXT_BYTES);
      return changed(
          Abi.RELOAD_TEXT.on(
              owner.pointer, content.data(), content.length(), report, report.byteSize()),
          report);
    }
  }

  private List<String> changed(int status, MemorySegment report) {
    Reference.reachabilityFence(this);
    String text = report.getString(0);
    if (status != 0) {
      throw Abi.exception(status, text);
    }
    return text.lines().toList();
  }

  /** What the gates and rules do, in words. */
  public String explain() {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment length = arena.allocate(JAVA_LONG);
      Abi.EXPLAIN.on(owner.pointer, MemorySegment.NULL, 0L, length);
      // Another thread's reload may have made it longer meanwhile: then it is cut.
      MemorySegment text = arena.allocate(length.get(JAVA_LONG, 0) + 1);
      Abi.EXPLAIN.on(owner.pointer, text, text.byteSize(), length);
      Reference.reachabilityFence(this);
      return text.getString(0);
    }
  }

  /**
   * The priority of a request by the rules that the file has now.
   *
   * @param attributes what is known of it; values may be null, where it lacks them
   */
  public Optional<Priority> classify(Map<String, String> attributes) {
    return classify(attributes, 0).priority();
  }

  /** The same, and a sentence with the rule that decided. */
  public Classified classifyWithReason(Map<String, String> attributes) {
    return classify(attributes, WHY_BYTES);
  }

  private Classified classify(Map<String, String> attributes, int whyBytes) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment all = arena.allocate(Layouts.ATTRIBUTE, Math.max(1, attributes.size()));
      int at = 0;
      for (Map.Entry<String, String> attribute : attributes.entrySet()) {
        MemorySegment struct = all.asSlice(at++ * Layouts.ATTRIBUTE.byteSize(), Layouts.ATTRIBUTE);
        Layouts.set(
            struct,
            Layouts.ATTRIBUTE,
            "name",
            Text.withoutNul(arena, attribute.getKey(), "an attribute's name"));
        if (attribute.getValue() != null) {
          Text value = Text.lenient(arena, attribute.getValue());
          Layouts.set(struct, Layouts.ATTRIBUTE, "value", value.data());
          Layouts.set(struct, Layouts.ATTRIBUTE, "value_len", value.length());
        }
      }
      MemorySegment priority = arena.allocate(JAVA_INT);
      MemorySegment why = whyBytes == 0 ? MemorySegment.NULL : arena.allocate(whyBytes);
      int status =
          Abi.CLASSIFY.on(
              owner.pointer, all, (long) attributes.size(), priority, why, (long) whyBytes);
      Reference.reachabilityFence(this);
      if (status != 0) {
        throw Abi.exception(
            status, "a request has at most 4096 attributes, got " + attributes.size());
      }
      int number = priority.get(JAVA_INT, 0);
      return new Classified(
          number == Priority.DEFAULT_NUMBER ? Optional.empty() : Optional.of(Priority.at(number)),
          whyBytes == 0 ? "" : why.getString(0));
    }
  }
}
