package dev.tidegate;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.SegmentAllocator;
import java.nio.ByteBuffer;
import java.nio.CharBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.Objects;

/**
 * A text in UTF-8, for the library.
 *
 * @param data its bytes and a NUL
 * @param length the bytes that count
 */
record Text(MemorySegment data, long length) {
  /**
   * A text as it is; it may hold NUL.
   *
   * @throws IllegalArgumentException for halves of characters, which Java's strings can hold
   */
  static Text of(SegmentAllocator allocator, String text, String what) {
    Objects.requireNonNull(text, what);
    try {
      ByteBuffer bytes = StandardCharsets.UTF_8.newEncoder().encode(CharBuffer.wrap(text));
      return of(allocator, bytes);
    } catch (CharacterCodingException malformed) {
      throw new IllegalArgumentException(what + " must be well-formed Unicode, got " + shown(text));
    }
  }

  /** A text that a client sent: halves of characters become question marks. */
  static Text lenient(SegmentAllocator allocator, String text) {
    return of(allocator, ByteBuffer.wrap(text.getBytes(StandardCharsets.UTF_8)));
  }

  /** A text that ends with a NUL in C, and so cannot hold one. */
  static MemorySegment withoutNul(SegmentAllocator allocator, String text, String what) {
    Text checked = of(allocator, text, what);
    if (text.indexOf(0) >= 0) {
      throw new IllegalArgumentException(what + " must not contain NUL, got " + shown(text));
    }
    return checked.data;
  }

  private static Text of(SegmentAllocator allocator, ByteBuffer bytes) {
    int length = bytes.remaining();
    MemorySegment data = allocator.allocate(length + 1L);
    MemorySegment.copy(
        bytes.array(), bytes.arrayOffset() + bytes.position(), data, JAVA_BYTE, 0, length);
    return new Text(data, length);
  }

  private static String shown(String text) {
    StringBuilder shown = new StringBuilder("\"");
    for (char c : text.toCharArray()) {
      if (Character.isISOControl(c) || Character.isSurrogate(c)) {
        shown.append("\\u%04x".formatted((int) c));
      } else {
        shown.append(c);
      }
    }
    return shown.append('"').toString();
  }
}
