package dev.tidegate;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.ref.Cleaner;
import java.lang.ref.Reference;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * The right to use the resource once, from any thread.
 *
 * <p>Release it exactly once; a second time does nothing. A permit that was forgotten is given back
 * by the garbage collector, some time, and counted in {@link Stats#collected}.
 */
public final class Permit implements AutoCloseable {
  /** What is left of a permit that was forgotten. It keeps the gate, and not the permit. */
  private static final class Out extends AtomicBoolean implements Runnable {
    private static final long serialVersionUID = 1;

    private final transient Handle gate;
    private final long token;

    Out(Handle gate, long token) {
      this.gate = gate;
      this.token = token;
    }

    boolean claim() {
      return compareAndSet(false, true);
    }

    @Override
    public void run() {
      if (claim()) {
        Abi.releaseCollected(gate.pointer, token);
        Reference.reachabilityFence(gate);
      }
    }
  }

  private final Out out;
  private final Cleaner.Cleanable forgotten;

  Permit(Handle gate, long token) {
    this.out = new Out(gate, token);
    this.forgotten = Handle.CLEANER.register(this, out);
  }

  /** Gives it back with outcome success; nothing where it was given back before. */
  @Override
  public void close() {
    release(Outcome.SUCCESS);
  }

  /** Gives it back; false, without effect, where that was done before. */
  public boolean release(Outcome outcome) {
    Objects.requireNonNull(outcome, "outcome");
    if (!out.claim()) {
      return false;
    }
    int status = Abi.release(out.gate.pointer, out.token, outcome.ordinal());
    forgotten.clean(); // finds it claimed, and forgets it
    Reference.reachabilityFence(this);
    return status == 0;
  }

  /** Whether it was given back. */
  public boolean released() {
    return out.get();
  }

  /**
   * The priority that it was admitted with.
   *
   * @throws IllegalStateException where it was given back
   */
  public Priority priority() {
    return read(permit -> Priority.at(Layouts.number(permit, Layouts.PERMIT, "priority")));
  }

  /**
   * Its weight.
   *
   * @throws IllegalStateException where it was given back
   */
  public long weight() {
    return read(permit -> Layouts.count(permit, Layouts.PERMIT, "weight"));
  }

  /**
   * Whether dry run let it in although enforcement would have shed it.
   *
   * @throws IllegalStateException where it was given back
   */
  public boolean over() {
    return read(permit -> Layouts.flag(permit, Layouts.PERMIT, "over"));
  }

  private <T> T read(java.util.function.Function<MemorySegment, T> part) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment permit = Layouts.sized(arena, Layouts.PERMIT);
      int status = Abi.GET_PERMIT.on(out.gate.pointer, out.token, permit);
      Reference.reachabilityFence(this);
      if (status != 0) {
        throw new IllegalStateException("the permit was released: " + Abi.text(status));
      }
      return part.apply(permit);
    }
  }
}
