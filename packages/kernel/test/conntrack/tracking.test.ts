import { describe, expect, test } from "vitest";
import { parseConnection, parseConnectionEvent } from "../../src/conntrack/parse-connection.ts";
import type { Connection } from "../../src/index.ts";

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
