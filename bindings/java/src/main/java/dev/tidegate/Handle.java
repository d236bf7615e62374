package dev.tidegate;

import java.lang.foreign.MemorySegment;
import java.lang.ref.Cleaner;

/**
 * A native gate as long as anything here needs it: the {@link Gate}, a permit that is out, a permit
 * that was forgotten.
 */
final class Handle {
  static final Cleaner CLEANER = Cleaner.create();

  final MemorySegment pointer;

  /** What the gate belongs to and dies with; null where it is this handle's own. */
  @SuppressWarnings("unused")
  private final Object owner;

  private Handle(MemorySegment pointer, Object owner) {
    this.pointer = pointer;
    this.owner = owner;
  }

  static Handle owning(MemorySegment pointer) {
    Handle handle = new Handle(pointer, null);
    CLEANER.register(handle, () -> Abi.freeGate(pointer));
    return handle;
  }

  static Handle of(Object owner, MemorySegment pointer) {
    return new Handle(pointer, owner);
  }
}
