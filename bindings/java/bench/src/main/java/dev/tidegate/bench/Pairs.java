package dev.tidegate.bench;

import com.alibaba.csp.sentinel.Entry;
import com.alibaba.csp.sentinel.SphU;
import com.alibaba.csp.sentinel.slots.block.BlockException;
import com.alibaba.csp.sentinel.slots.block.RuleConstant;
import com.alibaba.csp.sentinel.slots.block.flow.FlowRule;
import com.alibaba.csp.sentinel.slots.block.flow.FlowRuleManager;
import dev.tidegate.Gate;
import dev.tidegate.Permit;
import io.github.resilience4j.bulkhead.Bulkhead;
import io.github.resilience4j.bulkhead.BulkheadConfig;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;

/** A permit taken and given back, a call, and a refusal: here and elsewhere. */
@State(Scope.Benchmark)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
public class Pairs {
  private static final int LIMIT = 20;
  private static final Callable<Integer> WORK = () -> 1;

  private final Gate gate = Gate.of("bench", LIMIT);
  private final Gate full = Gate.of("full", 0);
  private final Semaphore semaphore = new Semaphore(LIMIT);
  private final Bulkhead bulkhead =
      Bulkhead.of(
          "bench",
          BulkheadConfig.custom()
              .maxConcurrentCalls(LIMIT)
              .maxWaitDuration(Duration.ZERO)
              .writableStackTraceEnabled(false)
              .build());

  /** Sentinel's counterpart of a gate: a flow rule on the number of threads. */
  @Setup
  public void rules() {
    FlowRule rule = new FlowRule("bench");
    rule.setGrade(RuleConstant.FLOW_GRADE_THREAD);
    rule.setCount(LIMIT);
    FlowRuleManager.loadRules(List.of(rule));
  }

  /** Ours: a permit, which the garbage collector would find if it were forgotten. */
  @Benchmark
  public void tidegatePair() {
    try (Permit permit = gate.admit()) {
      assert permit != null;
    }
  }

  /** Ours: a call, whose permit cannot be forgotten. */
  @Benchmark
  public int tidegateCall() throws Exception {
    return gate.call(WORK);
  }

  /** Ours: a refusal, counted. */
  @Benchmark
  public boolean tidegateReject() {
    return full.tryAdmit().isEmpty();
  }

  /** Java's own semaphore. */
  @Benchmark
  public void semaphorePair() {
    if (semaphore.tryAcquire()) {
      semaphore.release();
    }
  }

  /** A call behind resilience4j's bulkhead. */
  @Benchmark
  public int bulkheadCall() throws Exception {
    return bulkhead.executeCallable(WORK);
  }

  /** A call behind Sentinel's entry. */
  @Benchmark
  public int sentinelCall() throws Exception {
    try (Entry entry = SphU.entry("bench")) {
      return WORK.call();
    } catch (BlockException refused) {
      return 0;
    }
  }
}
