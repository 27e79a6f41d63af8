import { existsSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { parseFlow } from "../../src/conntrack/parse-flow.ts";
import { createConntrackTools } from "../../src/conntrack/tools.ts";
import { FakeConntrack, FakeRunner } from "../../src/fake/index.ts";
import type { ConntrackFlow } from "../../src/index.ts";
import { cases, check, flow, tracked, v6 } from "./cases.ts";
import { sweepAll } from "./sweep-all.ts";

describe("in memory", () => {
  test.for(cases)("delete $name", async (given) => {
    const conntrack = new FakeConntrack();
    conntrack.track(...tracked);
    await check((doomed) => sweepAll(conntrack, doomed), given);
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

  /** Lines of conntrack 1.4.7. */
  test.for<[string, Partial<ConntrackFlow> | undefined]>([
    [
      "udp      17 29 src=10.1.1.1 dst=10.96.0.10 sport=1000 dport=53 [UNREPLIED] src=10.144.0.5 dst=10.1.1.1 sport=5353 dport=1000 mark=0 use=1",
      {},
    ],
    [
      "udp      17 179 src=10.1.1.1 dst=10.96.0.10 sport=1000 dport=53 src=10.144.0.5 dst=10.1.1.1 sport=5353 dport=1000 [ASSURED] mark=16384 use=1",
      {},
    ],
    [
      "tcp      6 99 ESTABLISHED src=10.1.1.1 dst=10.96.0.10 sport=1 dport=53 src=10.144.0.5 dst=10.1.1.1 sport=5353 dport=1 [ASSURED] mark=0 use=2",
      {},
    ],
    [
      "udp      17 9 src=10.1.1.1 dst=10.96.0.10 sport=1 dport=53 packets=1 bytes=60 src=10.144.0.5 dst=10.1.1.1 sport=5353 dport=1 packets=2 bytes=9 use=1",
      {},
    ],
    [
      "udp      17 9 src=10.1.1.1 dst=10.96.0.10 sport=1 dport=53 src=10.144.0.5 dst=10.1.1.1 sport=5353 dport=1 mark=0 zone=3 use=1",
      undefined,
    ],
    [
      "udp      17 9 src=10.1.1.1 dst=10.96.0.10 sport=1 dport=53 zone-orig=6 [UNREPLIED] src=10.144.0.5 dst=10.1.1.1 sport=5353 dport=1 mark=0 use=1",
      undefined,
    ],
    [
      "udp      17 9 src=10.1.1.1 dst=10.96.0.10 sport=1 dport=53 [UNREPLIED] src=10.144.0.5 dst=10.1.1.1 sport=5353 dport=1 zone-reply=7 mark=0 use=1",
      undefined,
    ],
    [
      "icmp     1 29 src=10.1.1.1 dst=10.96.0.10 type=8 code=0 id=1 src=10.96.0.10 dst=10.1.1.1 type=0 code=0 id=1 mark=0 use=1",
      undefined,
    ],
    ["", undefined],
  ])("%s", ([line, expected]) => {
    expect(parseFlow(line, "IPv4", "UDP")).toEqual(expected && flow(expected));
  });
});
