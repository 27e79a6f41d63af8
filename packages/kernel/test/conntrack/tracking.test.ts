import { attribute } from "@fairlead/netfilter/netlink";
import { describe, expect, test } from "vitest";
import { parseConnection, parseConnectionEvent } from "../../src/conntrack/flows.ts";
import { decodeConnection } from "../../src/conntrack/messages.ts";
import { FakeRunner } from "../../src/fake/index.ts";
import { type Connection, listConnections } from "../../src/index.ts";
import { original, reply } from "./cases.ts";

const LINE =
  "tcp      6 431999 ESTABLISHED src=10.144.1.9 dst=10.96.0.10 sport=40000 dport=80 packets=3 bytes=180 src=10.144.2.6 dst=10.144.1.9 sport=8080 dport=40000 packets=2 bytes=120 [ASSURED] mark=0 use=1";
const CONNECTION: Connection = {
  family: "IPv4",
  protocol: "TCP",
  original: { source: "10.144.1.9", destination: "10.96.0.10", sourcePort: 40_000, destinationPort: 80 },
  reply: { source: "10.144.2.6", destination: "10.144.1.9", sourcePort: 8080, destinationPort: 40_000 },
  state: "ESTABLISHED",
  replied: true,
  expires: 431_999,
  sent: { bytes: 180, packets: 3 },
  received: { bytes: 120, packets: 2 },
};

describe("what conntrack prints", () => {
  test("an entry with counters", () => {
    expect(parseConnection(LINE, "IPv4")).toEqual(CONNECTION);
  });

  test.each(["[OFFLOAD]", "[HW_OFFLOAD]"])("an entry in a flowtable has neither state nor expiry: %s", (mark) => {
    const line = LINE.replace("431999 ESTABLISHED ", "").replace("[ASSURED]", mark);
    const { state: _state, expires: _expires, ...known } = CONNECTION;
    expect(parseConnection(line, "IPv4")).toEqual({ ...known, offloaded: true });
  });

  test.each([
    [
      "an entry of a protocol without ports",
      "icmp     1 29 src=10.0.0.1 dst=10.0.0.2 type=8 code=0 id=1 src=10.0.0.2 dst=10.0.0.1",
    ],
    ["another zone's", LINE.replace(" mark=0", " mark=0 zone=5")],
    ["the summary", "conntrack v1.4.7 (conntrack-tools): 2 flow entries have been shown."],
    [
      "an address that is none",
      "tcp 6 100 ESTABLISHED src=10.0.0.999 dst=10.96.0.10 sport=1 dport=80 src=10.1.0.5 dst=10.0.0.9 sport=8080 dport=1",
    ],
  ])("no entry: %s", (_what, line) => {
    expect(parseConnection(line, "IPv4")).toBeUndefined();
  });

  test.each([
    [
      "    [NEW] udp      17 30 src=10.144.1.9 dst=10.96.0.10 sport=1000 dport=53 [UNREPLIED] src=10.144.2.6 dst=10.144.1.9 sport=53 dport=1000",
      "new",
      { replied: false, expires: 30 },
    ],
    [
      " [UPDATE] tcp      6 60 SYN_RECV src=10.144.1.9 dst=10.96.0.10 sport=1 dport=80 src=10.144.2.6 dst=10.144.1.9 sport=8080 dport=1",
      "update",
      { state: "SYN_RECV", replied: true },
    ],
    [
      "[DESTROY] tcp      6 src=10.144.1.9 dst=10.96.0.10 sport=1 dport=80 packets=3 bytes=180 src=10.144.2.6 dst=10.144.1.9 sport=8080 dport=1 packets=2 bytes=120",
      "gone",
      { sent: { bytes: 180, packets: 3 } },
    ],
    [
      "[DESTROY] tcp      6 TIME_WAIT src=10.144.1.9 dst=10.96.0.10 sport=1 dport=80 src=10.144.2.6 dst=10.144.1.9 sport=8080 dport=1",
      "gone",
      { state: "TIME_WAIT" },
    ],
  ])("event %#", (line, kind, connection) => {
    expect(parseConnectionEvent(line, "IPv4")).toMatchObject({ kind, connection });
  });
});

test("connections are listed with both directions, their addresses in canonical form", async () => {
  const line =
    "tcp      6 117 SYN_SENT src=fd00:0198:0051:0000:0000:0000:0000:0007 dst=fd00:10:96::71 sport=40000 dport=80 [UNREPLIED] src=fd00:144::1:5 dst=fd00:201::10 sport=8080 dport=61000 mark=0 use=1";
  const runner = new FakeRunner({ conntrack: (args) => (args.includes("ipv6") ? `${line}\nno entry\n` : "") });
  const found = [];
  for await (const connection of listConnections(runner, "IPv6", "TCP")) found.push(connection);
  expect(found).toEqual([
    {
      ...{ family: "IPv6", protocol: "TCP", state: "SYN_SENT", replied: false, expires: 117 },
      original: { source: "fd00:198:51::7", destination: "fd00:10:96::71", sourcePort: 40_000, destinationPort: 80 },
      reply: { source: "fd00:144::1:5", destination: "fd00:201::10", sourcePort: 8080, destinationPort: 61_000 },
    },
  ]);
});

/** IPS_SEEN_REPLY | IPS_CONFIRMED, IPS_OFFLOAD, IPS_HW_OFFLOAD. */
test.each([
  [0x000a, undefined],
  [0x400a, true],
  [0xc00a, true],
])("status %i: in a flowtable %s", (status, offloaded) => {
  const bits = Buffer.alloc(4);
  bits.writeUInt32BE(status);
  const head = Buffer.from([2, 0, 0, 0]);
  const bytes = Buffer.concat([head, original, reply, attribute(3, bits)]);
  const found = decodeConnection(bytes, { start: head.length, end: bytes.length });
  expect(found).toMatchObject({ family: "IPv4", protocol: "UDP", replied: true });
  expect(found?.offloaded).toBe(offloaded);
});
