import { setImmediate } from "node:timers/promises";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { type Argv, CommandError, createRunner, lines } from "../src/index.ts";
import { ownTurn } from "../src/process-runner.ts";

const runner = createRunner({ env: { FAIRLEAD_TEST: "yes" } });

async function failure(work: Promise<unknown>): Promise<CommandError> {
  const error = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof CommandError)) throw new Error(`expected a CommandError, got ${String(error)}`);
  return error;
}

async function all(pieces: AsyncIterable<string>): Promise<string> {
  let text = "";
  for await (const piece of pieces) text += piece;
  return text;
}

describe("run", () => {
  test("gives both outputs, arguments go as they are", async () => {
    const hostile = "a b; $(id) 'x'\n\"";
    const script = 'printf %s "$1"; printf err >&2';
    expect(await runner.run(["sh", "-c", script, "sh", hostile])).toEqual({ stdout: hostile, stderr: "err" });
  });

  test("sets the locale, keeps the environment", async () => {
    const { stdout } = await runner.run(["sh", "-c", "echo $LC_ALL $FAIRLEAD_TEST $HOME"]);
    const { HOME = "" } = process.env;
    expect(stdout.trim()).toBe(`C yes ${HOME}`.trim());
  });

  test("says how tools get memory, where the environment does not", async () => {
    const reported = async (env: Readonly<Record<string, string>>) =>
      (await createRunner({ env }).run(["sh", "-c", "echo $GLIBC_TUNABLES"])).stdout.trim();
    expect((await reported({})).split(":")).toContain("glibc.malloc.hugetlb=1");
    expect(await reported({ GLIBC_TUNABLES: "glibc.malloc.perturb=1" })).toBe("glibc.malloc.perturb=1");
    vi.stubEnv("GLIBC_TUNABLES", "glibc.malloc.check=3");
    onTestFinished(() => void vi.unstubAllEnvs());
    expect(await reported({})).toBe("glibc.malloc.check=3");
  });

  test("finds the system's tools with a plain user's PATH", async () => {
    const { stdout } = await runner.run(["sh", "-c", "echo $PATH"]);
    expect(stdout.trim().split(":")).toEqual(expect.arrayContaining(["/usr/sbin", "/sbin"]));
  });

  test("input is empty unless given", async () => {
    expect((await runner.run(["cat"])).stdout).toBe("");
  });

  test("exit code and trimmed stderr", async () => {
    const argv: Argv = ["sh", "-c", "echo oh no >&2; exit 3"];
    const error = await failure(runner.run(argv));
    expect(error).toMatchObject({ argv, reason: "exit", exitCode: 3, stderr: "oh no", timedOut: false });
    expect(error.message).toBe("sh -c echo oh no >&2; exit 3: exit code 3: oh no");
  });

  test("a program that is not there, with and without a prefix", async () => {
    expect(await failure(runner.run(["fairlead-no-such-program"]))).toMatchObject({ reason: "not-found" });
    const prefixed = createRunner({ prefix: ["env"] });
    const error = await failure(prefixed.run(["fairlead-no-such-program"]));
    expect(error).toMatchObject({ reason: "not-found", argv: ["env", "fairlead-no-such-program"] });
  });

  test("killed by another process", async () => {
    const error = await failure(runner.run(["sh", "-c", "kill -9 $$"]));
    expect(error).toMatchObject({ reason: "signal", signal: "SIGKILL" });
  });

  test("killed after its time", async () => {
    const error = await failure(runner.run(["sleep", "60"], { timeoutMs: 50 }));
    expect(error).toMatchObject({ reason: "timeout", timedOut: true });
    expect(error.message).toBe("sleep 60: killed after 50 ms");
  });

  test("killed after another process stopped it, and reported so", async () => {
    const impatient = createRunner({ stoppedMs: 20 });
    const script = "kill -STOP $$; echo went on";
    for (const work of [() => impatient.run(["sh", "-c", script]), () => all(impatient.stream(["sh", "-c", script]))]) {
      const error = await failure(work());
      expect(error).toMatchObject({ reason: "stopped", timedOut: false });
      expect(error.message).toContain("was stopped (SIGSTOP), did not continue within 20 ms and was killed");
    }
  });

  test("aborted by the caller", async () => {
    const abort = new AbortController();
    const running = failure(runner.run(["sleep", "60"], { signal: abort.signal }));
    abort.abort();
    expect(await running).toMatchObject({ reason: "aborted" });
  });

  test("killed when it says too much", async () => {
    expect(await failure(runner.run(["yes"], { maxStdout: 1000 }))).toMatchObject({ reason: "output" });
  });
});

describe("input", () => {
  test("pieces arrive whole and in order, from an async iterable too", async () => {
    async function* pieces() {
      yield "one\n";
      await setImmediate();
      yield "zwölf\n";
    }
    expect((await runner.run(["cat"], { input: pieces() })).stdout).toBe("one\nzwölf\n");
    expect((await runner.run(["cat"], { input: ["a", "b"] })).stdout).toBe("ab");
  });

  test("is made no faster than it is read", async () => {
    let made = 0;
    function* endless() {
      for (;;) {
        made += 1;
        yield "x".repeat(1024);
      }
    }
    // It reads 10 KB and ends: what it did not read was never made, a few buffers apart.
    await runner.run(["head", "-c", "10240"], { input: endless() }).catch(() => {});
    expect(made).toBeGreaterThanOrEqual(10);
    expect(made).toBeLessThan(2048);
  });

  test("a process that ends before it has read everything is judged by its exit code", async () => {
    const input = Array.from({ length: 2000 }, () => "x".repeat(1024));
    expect(await failure(runner.run(["sh", "-c", "exit 5"], { input }))).toMatchObject({ reason: "exit", exitCode: 5 });
    expect(await runner.run(["true"], { input })).toEqual({ stdout: "", stderr: "" });
  });

  test("input that throws kills the process before it sees an end", async () => {
    function* broken() {
      yield "first\n";
      throw new Error("cannot render");
    }
    const script = "cat; echo the end was seen";
    const seen: string[] = [];
    const error = await runner.run(["sh", "-c", script], { input: broken() }).then(
      ({ stdout }) => seen.push(stdout),
      (thrown: unknown) => thrown,
    );
    expect(seen).toEqual([]);
    expect(String(error)).toContain("cannot render");
  });
});

describe("stream", () => {
  test("gives all of it, in pieces", async () => {
    const text = await all(runner.stream(["seq", "100000"]));
    expect(text.split("\n")).toHaveLength(100_001);
  });

  test("lines, the last one without an end too", async () => {
    const found: string[] = [];
    for await (const line of lines(runner.stream(["printf", "a\\n\\nzwölf\\nb"]))) found.push(line);
    expect(found).toEqual(["a", "", "zwölf", "b"]);
  });

  test("fails after the last piece", async () => {
    const seen: string[] = [];
    const work = async () => {
      for await (const piece of runner.stream(["sh", "-c", "echo out; echo why >&2; exit 4"])) seen.push(piece);
    };
    expect(await failure(work())).toMatchObject({ reason: "exit", exitCode: 4, stderr: "why" });
    expect(seen.join("")).toBe("out\n");
  });

  test("a program that is not there", async () => {
    expect(await failure(all(runner.stream(["fairlead-no-such-program"])))).toMatchObject({ reason: "not-found" });
  });

  test("leaving the loop kills the process", async () => {
    let pid = 0;
    for await (const piece of runner.stream(["sh", "-c", "echo $$; exec sleep 60"])) {
      pid = Number(piece);
      break;
    }
    expect(() => process.kill(pid, 0)).toThrow("ESRCH");
  });

  test("an abort ends it, and so does its time", async () => {
    const abort = new AbortController();
    const running = failure(all(runner.stream(["sleep", "60"], { signal: abort.signal })));
    abort.abort();
    expect(await running).toMatchObject({ reason: "aborted" });
    expect(await failure(all(runner.stream(["sleep", "60"], { timeoutMs: 50 })))).toMatchObject({ reason: "timeout" });
  });
});

test("processes that are asked for at once are started in turns of the event loop, one in each, in their order", async () => {
  let turn = 0;
  let counting = globalThis.setImmediate(function count() {
    turn++;
    counting = globalThis.setImmediate(count);
  });
  const turns = await Promise.all(
    Array.from({ length: 4 }, async () => {
      await ownTurn();
      return turn;
    }),
  );
  clearImmediate(counting);
  expect(turns[0]).toBe(0);
  expect(turns).toEqual([...new Set(turns)].sort());
});
