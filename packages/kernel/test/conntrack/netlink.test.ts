import { join } from "node:path";
import { attribute, nest } from "@fairlead/netfilter/netlink";
import { describe, expect, test } from "vitest";
import { withCommandFile } from "../../src/conntrack/command-file.ts";
import { decodeEntry, encodeDeletion, encodeDump } from "../../src/conntrack/messages.ts";
import { createNetlinkConntrack } from "../../src/conntrack/netlink.ts";
import { FakeRunner } from "../../src/fake/index.ts";
import { type ConntrackFlow, createConntrack, createRunner, type Runner } from "../../src/index.ts";
import { decodeReplies } from "../../src/netlink/messages.ts";
import { createNamespace } from "../../src/netns/index.ts";
import { kernelSuite } from "../kernel-test.ts";
import { done, message, result, scripted } from "../netlink/scripted.ts";
import { cases, check, checkZones, flow, type Sweep, track, tracked, v6 } from "./cases.ts";
import { type Kind, keyOf } from "./sweep-all.ts";

const port = (number: number) => Buffer.from([number >> 8, number & 0xff]);

/** One direction of an entry, as the kernel writes it. */
function tuple(type: number, source: readonly number[], destination: readonly number[], ports: [number, number]) {
  const [from, to] = source.length === 4 ? [1, 2] : [3, 4];
  return nest(
    type,
    nest(1, attribute(from, Buffer.from(source)), attribute(to, Buffer.from(destination))),
    nest(2, attribute(1, Buffer.from([17])), attribute(2, port(ports[0])), attribute(3, port(ports[1]))),
  );
}

const CLIENT = [10, 1, 1, 1];
const original = tuple(1, CLIENT, [10, 96, 0, 10], [1000, 53]);
const reply = tuple(2, [10, 144, 0, 5], CLIENT, [5353, 1000]);
const id = attribute(12, Buffer.from([1, 2, 3, 4]));
/** CTA_ZONE, of an entry that is in one. */
const zone = (number: number) => attribute(18, port(number));
/** CTA_TUPLE_ZONE, where the zone is that of one direction. */
const withZone = (direction: Buffer, number: number) =>
  nest(direction.readUInt16LE(2) & 0x3fff, direction.subarray(4), attribute(3, port(number)));
/** Status, timeout and mark stand between. */
const others = attribute(3, Buffer.from([0, 0, 1, 0x8a]));

const entry = message(0x100, Buffer.concat([original, reply, others, id]));
function onKernel(...datagrams: readonly Buffer[]) {
  const kernel = scripted(...datagrams);
  return { ...kernel, conntrack: createNetlinkConntrack(kernel.open) };
}

const all = (flows: readonly ConntrackFlow[]) => flows;

describe("netlink", () => {
  test("an entry, and the message that deletes it", () => {
    const [got] = decodeReplies(entry);
    if (got?.kind !== "data") throw new Error(`no data: ${got?.kind}`);
    expect(decodeEntry(entry, got.attributes, "IPv4", "UDP")).toEqual(flow());
    expect(decodeEntry(entry, got.attributes, "IPv4", "SCTP")).toBeUndefined();
    const deletion = encodeDeletion(entry, got.attributes, "IPv4");
    expect(deletion.subarray(20)).toEqual(Buffer.concat([original, id, zone(0)]));
    expect(deletion.readUInt16LE(4)).toBe(0x102);
  });

  test.for([
    ["of both directions", [original, reply, zone(5)]],
    ["of the original direction", [withZone(original, 6), reply]],
    ["of the reply's", [original, withZone(reply, 7)]],
  ] as const)("an entry in another network's zone %s is none of ours", ([, attributes]) => {
    const bytes = message(0x100, Buffer.concat([...attributes, others, id]));
    expect(decodeEntry(bytes, { start: 20, end: bytes.length }, "IPv4", "UDP")).toBeUndefined();
  });

  test("zone 0 may be named", () => {
    const bytes = message(0x100, Buffer.concat([original, reply, zone(0)]));
    expect(decodeEntry(bytes, { start: 20, end: bytes.length }, "IPv4", "UDP")).toEqual(flow());
  });

  test("IPv6 addresses are canonical", () => {
    const [prefix, zeros] = [[0xfd, 0, 0, 0x10, 0, 0x96], Array.from<number>({ length: 9 }).fill(0)];
    const service = [...prefix, ...zeros, 0xa];
    const endpoint = [0xfd, 0, 0x01, 0x44, ...zeros, 0, 0, 5];
    const bytes = message(
      0x100,
      Buffer.concat([tuple(1, endpoint, service, [1, 53]), tuple(2, endpoint, endpoint, [5353, 1])]),
    );
    expect(decodeEntry(bytes, { start: 20, end: bytes.length }, "IPv6", "UDP")).toEqual(v6);
  });

  test("entries over several datagrams, those picked deleted, one gone meanwhile", async () => {
    const answers = [result(2, 1), result(0, 2)];
    const kernel = onKernel(Buffer.concat([entry, entry]), entry, done, ...answers);
    const seen: ConntrackFlow[] = [];
    const choose = (flows: readonly ConntrackFlow[]) => {
      seen.push(...flows);
      return flows;
    };
    expect(await kernel.conntrack.sweep("IPv4", "UDP", choose)).toBe(3);
    expect(seen).toEqual([flow(), flow(), flow()]);
    expect(kernel.sent[0]).toEqual(encodeDump("IPv4", "UDP"));
    expect(kernel.sent.slice(1).map(({ length }) => length)).toEqual([
      3 * (20 + original.length + id.length + zone(0).length),
    ]);
    expect(kernel.closed()).toBe(1);
  });

  test("a kernel without zones is asked without them from then on", async () => {
    const unsupported = result(95);
    const kernel = onKernel(unsupported, entry, done, result(0), entry, done, result(0));
    expect(await kernel.conntrack.sweep("IPv4", "UDP", all)).toBe(1);
    expect(await kernel.conntrack.sweep("IPv4", "UDP", all)).toBe(1);
    const [named, , , asked] = kernel.sent;
    expect(named).toEqual(encodeDump("IPv4", "UDP"));
    expect(asked).toEqual(encodeDump("IPv4", "UDP", false));
    expect(kernel.sent).toHaveLength(5);
    for (const request of kernel.sent.slice(1)) expect(request.includes(zone(0))).toBe(false);
    await expect(onKernel(unsupported, unsupported).conntrack.sweep("IPv4", "UDP", all)).rejects.toMatchObject({
      code: "ENOTSUP",
    });
  });

  test("what the kernel refuses is an error with its name, and the socket is closed", async () => {
    const reading = onKernel(result(1));
    await expect(reading.conntrack.sweep("IPv4", "UDP", all)).rejects.toMatchObject({
      code: "EPERM",
      message: "reading conntrack entries: EPERM: operation not permitted",
    });
    const deleting = onKernel(entry, done, result(16));
    await expect(deleting.conntrack.sweep("IPv4", "UDP", all)).rejects.toMatchObject({ code: "EBUSY" });
    expect([reading.closed(), deleting.closed()]).toEqual([1, 1]);
  });

  test("a message that is cut off is an error", async () => {
    const cut = onKernel(entry.subarray(0, entry.length - 4));
    await expect(cut.conntrack.sweep("IPv4", "UDP", all)).rejects.toThrow("netlink: a message of");
  });

  test("without netlink conntrack-tools do, which is said once", async () => {
    const runner = new FakeRunner({ conntrack: () => "" });
    const reasons: unknown[] = [];
    const reason = new Error("no binary");
    const open = () => Promise.reject(reason);
    const conntrack = createConntrack(runner, { open, onFallback: (given) => reasons.push(given) });
    await conntrack.sweep("IPv4", "UDP", all);
    await conntrack.sweep("IPv4", "SCTP", all);
    expect(reasons).toEqual([reason]);
    expect(runner.faults.calls.map(({ argv }) => argv.join(" "))).toEqual([
      "conntrack -L -f ipv4 -p udp",
      "conntrack -L -f ipv4 -p sctp",
    ]);
  });
});

const driver = join(import.meta.dirname, "sweep-main.ts");

async function sweepIn(runner: Runner, doomed: readonly ConntrackFlow[], kinds?: readonly Kind[]) {
  const argv = [process.execPath, "--conditions=@fairlead/source", "--no-warnings", driver] as const;
  const { stdout } = await runner.run(argv, { input: JSON.stringify({ doomed, kinds }) });
  return JSON.parse(stdout) as { readonly seen: readonly string[]; readonly cpuMilliseconds: number };
}

kernelSuite("netlink on the kernel", () => {
  test.for(cases)("delete $name", async (given) => {
    await using namespace = await createNamespace();
    const runner = createRunner({ prefix: namespace.argvPrefix });
    for (const [number, one] of tracked.entries()) await track(runner, one, number);
    const sweep: Sweep = async (doomed) => (await sweepIn(runner, doomed)).seen;
    await check(sweep, given);
  });

  test("entries in other networks' zones are not touched", async () => {
    await using namespace = await createNamespace();
    const runner = createRunner({ prefix: namespace.argvPrefix });
    await checkZones(runner, async (doomed) => (await sweepIn(runner, doomed)).seen);
  });

  // Making the entries takes longest.
  test("1,000 different flows of 100,000 entries, in one pass over the table", { timeout: 120_000 }, async () => {
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
    const { seen, cpuMilliseconds } = await sweepIn(runner, stale, udp);
    expect(seen).toHaveLength(100_000);
    process.stdout.write(`${Math.round(cpuMilliseconds)} ms of CPU for 1,000 stale flows among 100,000\n`);
    // A second is the aim, on a quiet machine; a pass for each flow would take minutes anywhere.
    expect(cpuMilliseconds).toBeLessThan(10_000);
    const left = await sweepIn(runner, [], udp);
    expect(left.seen).toHaveLength(99_000);
    expect(new Set(left.seen)).toEqual(new Set(serving.map(keyOf)));
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
