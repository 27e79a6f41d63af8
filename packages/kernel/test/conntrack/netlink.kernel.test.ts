import { join } from "node:path";
import { expect, test } from "vitest";
import { withCommandFile } from "../../src/conntrack/conntrack.ts";
import { type ConntrackFlow, createRunner, type Runner } from "../../src/index.ts";
import { createNamespace } from "../../src/netns/index.ts";
import { kernelSuite } from "../kernel-test.ts";
import { cases, check, checkZones, flow, flowKey, type Kind, type Sweeps, track, tracked } from "./cases.ts";

const driver = join(import.meta.dirname, "sweep-main.ts");

interface Swept {
  readonly seen: readonly string[];
  readonly cpuMilliseconds: number;
}

/** One after the other, in one process: its start takes longer than a sweep. */
async function sweepIn(runner: Runner, each: readonly (readonly ConntrackFlow[])[], kinds?: readonly Kind[]) {
  const argv = [process.execPath, "--conditions=@fairlead/source", "--no-warnings", driver] as const;
  const { stdout } = await runner.run(argv, { timeoutMs: 0, input: JSON.stringify({ each, kinds }) });
  const swept: readonly Swept[] = JSON.parse(stdout);
  return swept;
}

const sweepsIn =
  (runner: Runner): Sweeps =>
  async (...each) =>
    (await sweepIn(runner, each)).map(({ seen }) => seen);

kernelSuite("netlink on the kernel", () => {
  test.for(cases)("delete $name", async (given) => {
    await using namespace = await createNamespace();
    const runner = createRunner({ prefix: namespace.argvPrefix });
    for (const [number, one] of tracked.entries()) await track(runner, one, number);
    await check(sweepsIn(runner), given);
  });

  test("entries in other networks' zones are not touched", async () => {
    await using namespace = await createNamespace();
    const runner = createRunner({ prefix: namespace.argvPrefix });
    await checkZones(runner, sweepsIn(runner));
  });

  test("1,000 different flows of 100,000 entries, in one pass over the table", async () => {
    await using namespace = await createNamespace();
    const runner = createRunner({ prefix: namespace.argvPrefix });
    const udp: readonly Kind[] = [{ family: "IPv4", protocol: "UDP" }];
    const service = (number: number) => `10.96.${number >> 8}.${number & 0xff}`;
    const stale = Array.from({ length: 1_000 }, (_, number) =>
      flow({ originalDestination: service(number), replySource: "10.145.0.1" }),
    );
    const serving = Array.from({ length: 99_000 }, (_, number) =>
      flow({ originalDestination: service(number % 1_000) }),
    );
    const entries = [...serving, ...stale].map((one, number) => insertion(one, number));
    // It prints each entry.
    const silent = ["sh", "-c", 'exec conntrack -R "$0" >/dev/null'] as const;
    await withCommandFile(entries, (path) => runner.run([...silent, path]));
    const [first, second] = await sweepIn(runner, [stale, []], udp);
    // A pass for each flow would see each entry a thousand times.
    expect(first?.seen).toHaveLength(100_000);
    process.stdout.write(`${Math.round(first?.cpuMilliseconds ?? 0)} ms of CPU for 1,000 stale flows among 100,000\n`);
    expect(second?.seen).toHaveLength(99_000);
    expect(new Set(second?.seen)).toEqual(new Set(serving.map(flowKey)));
  });
});

/** A line for `conntrack -R`; each number is another client. */
function insertion(one: ConntrackFlow, number: number): string {
  const source = `10.144.${(number >> 8) & 0xff}.${number & 0xff}`;
  const sourcePort = 20_000 + (number >> 16);
  const original = `-s ${source} -d ${one.originalDestination} --sport ${sourcePort} --dport ${one.originalPort}`;
  const reply = `-r ${one.replySource} -q ${source} --reply-port-src ${one.replyPort} --reply-port-dst ${sourcePort}`;
  return `-I -p udp -t 1000 ${original} ${reply}\n`;
}
