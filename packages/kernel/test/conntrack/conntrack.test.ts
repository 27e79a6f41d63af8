import { existsSync, readFileSync } from "node:fs";
import { attribute, nest } from "@fairlead/netfilter/netlink";
import { describe, expect, test } from "vitest";
import { createConntrackTools, createNetlinkConntrack } from "../../src/conntrack/conntrack.ts";
import { parseFlow } from "../../src/conntrack/flows.ts";
import { decodeEntry, encodeDeletion, encodeDump } from "../../src/conntrack/messages.ts";
import { FakeConntrack, FakeRunner } from "../../src/fake/index.ts";
import { type ConntrackFlow, createConntrack } from "../../src/index.ts";
import { decodeReplies } from "../../src/netlink/messages.ts";
import { done, message, result, scripted } from "../netlink/scripted.ts";
import { cases, check, flow, original, port, reply, tracked, tuple, v6 } from "./cases.ts";

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

const unnumbered = (request: Buffer | undefined) => request && [request.subarray(0, 8), request.subarray(12)];

/** As netlink says it: with the client. */
const read = flow({ originalSource: "10.1.1.1" });
const all = (flows: readonly ConntrackFlow[]) => flows;

describe("netlink", () => {
  test("an entry, and the message that deletes it", () => {
    const [got] = decodeReplies(entry);
    if (got?.kind !== "data") throw new Error(`no data: ${got?.kind}`);
    expect(decodeEntry(entry, got.attributes, "IPv4", "UDP")).toEqual(read);
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
    expect(decodeEntry(bytes, { start: 20, end: bytes.length }, "IPv4", "UDP")).toEqual(read);
  });

  test("IPv6 addresses are canonical", () => {
    const [prefix, zeros] = [[0xfd, 0, 0, 0x10, 0, 0x96], Array.from<number>({ length: 9 }).fill(0)];
    const service = [...prefix, ...zeros, 0xa];
    const endpoint = [0xfd, 0, 0x01, 0x44, ...zeros, 0, 0, 5];
    const bytes = message(
      0x100,
      Buffer.concat([tuple(1, endpoint, service, [1, 53]), tuple(2, endpoint, endpoint, [5353, 1])]),
    );
    expect(decodeEntry(bytes, { start: 20, end: bytes.length }, "IPv6", "UDP")).toEqual({
      ...v6,
      originalSource: "fd00:144::5",
    });
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
    expect(seen).toEqual([read, read, read]);
    expect(unnumbered(kernel.sent[0])).toEqual(unnumbered(encodeDump("IPv4", "UDP")));
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
    expect(unnumbered(named)).toEqual(unnumbered(encodeDump("IPv4", "UDP")));
    expect(unnumbered(asked)).toEqual(unnumbered(encodeDump("IPv4", "UDP", false)));
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

  test("entries that the kernel stops listing early are an error", async () => {
    const early = message(3, Buffer.alloc(0));
    early.writeInt32LE(-12, 16);
    await expect(onKernel(entry, early).conntrack.sweep("IPv4", "UDP", all)).rejects.toMatchObject({ code: "ENOMEM" });
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

describe("in memory", () => {
  test.for(cases)("delete $name", async (given) => {
    const conntrack = new FakeConntrack();
    conntrack.track(...tracked);
    await check(conntrack, given);
  });

  test("killed half way, what came before is gone", async () => {
    const conntrack = new FakeConntrack();
    conntrack.track(flow(), flow(), v6);
    conntrack.faults.failCall(2, { kind: "kill", transactions: 1 });
    await expect(conntrack.sweep("IPv4", "UDP", (flows) => flows)).rejects.toMatchObject({ reason: "signal" });
    expect(conntrack.entries).toEqual([flow(), v6]);
  });
});

describe("conntrack-tools", () => {
  const line = (destination: string) =>
    `udp      17 29 src=10.1.1.1 dst=${destination} sport=1000 dport=53 src=10.144.0.5 dst=10.1.1.1 sport=5353 dport=1000 mark=0 use=1`;

  test("one process deletes them all, flows that look alike once; none where nothing is picked", async () => {
    const commands: string[] = [];
    const paths: string[] = [];
    const runner = new FakeRunner({
      conntrack: ([action, path = ""]) => {
        if (action === "-L") return [line("10.96.0.10"), line("10.96.0.10"), line("10.96.0.11")].join("\n");
        commands.push(...readFileSync(path, "utf8").split("\n"));
        paths.push(path);
        return "";
      },
    });
    const conntrack = createConntrackTools(runner);
    expect(await conntrack.sweep("IPv4", "UDP", () => [])).toBe(0);
    expect(await conntrack.sweep("IPv4", "UDP", (flows) => flows)).toBe(3);
    expect(runner.faults.calls).toHaveLength(3);
    expect(paths.some((path) => existsSync(path))).toBe(false);
    expect(commands).toEqual([
      "-D -f ipv4 -p udp --orig-dst 10.96.0.10 --orig-port-dst 53 --reply-src 10.144.0.5 --reply-port-src 5353 -w 0 --orig-zone 0 --reply-zone 0",
      "-D -f ipv4 -p udp --orig-dst 10.96.0.11 --orig-port-dst 53 --reply-src 10.144.0.5 --reply-port-src 5353 -w 0 --orig-zone 0 --reply-zone 0",
      "",
    ]);
  });

  const [OURS, LEFT_OUT] = [
    `
udp      17 29 src=10.1.1.1 dst=10.96.0.10 sport=1000 dport=53 [UNREPLIED] src=10.144.0.5 dst=10.1.1.1 sport=5353 dport=1000 mark=0 use=1
udp      17 179 src=10.1.1.1 dst=10.96.0.10 sport=1000 dport=53 src=10.144.0.5 dst=10.1.1.1 sport=5353 dport=1000 [ASSURED] mark=16384 use=1
tcp      6 99 ESTABLISHED src=10.1.1.1 dst=10.96.0.10 sport=1 dport=53 src=10.144.0.5 dst=10.1.1.1 sport=5353 dport=1 [ASSURED] mark=0 use=2
udp      17 9 src=10.1.1.1 dst=10.96.0.10 sport=1 dport=53 packets=1 bytes=60 src=10.144.0.5 dst=10.1.1.1 sport=5353 dport=1 packets=2 bytes=9 use=1
`,
    `
udp      17 9 src=10.1.1.1 dst=10.96.0.10 sport=1 dport=53 src=10.144.0.5 dst=10.1.1.1 sport=5353 dport=1 mark=0 zone=3 use=1
udp      17 9 src=10.1.1.1 dst=10.96.0.10 sport=1 dport=53 zone-orig=6 [UNREPLIED] src=10.144.0.5 dst=10.1.1.1 sport=5353 dport=1 mark=0 use=1
udp      17 9 src=10.1.1.1 dst=10.96.0.10 sport=1 dport=53 [UNREPLIED] src=10.144.0.5 dst=10.1.1.1 sport=5353 dport=1 zone-reply=7 mark=0 use=1
icmp     1 29 src=10.1.1.1 dst=10.96.0.10 type=8 code=0 id=1 src=10.96.0.10 dst=10.1.1.1 type=0 code=0 id=1 mark=0 use=1
`,
  ];
  /** Lines of conntrack 1.4.7. */
  test.each(OURS.trim().split("\n"))("%s is an entry", (line) =>
    expect(parseFlow(line, "IPv4", "UDP")).toEqual(flow({})),
  );
  test.each(["", ...LEFT_OUT.trim().split("\n")])("%s is none", (line) =>
    expect(parseFlow(line, "IPv4", "UDP")).toBeUndefined(),
  );
});
