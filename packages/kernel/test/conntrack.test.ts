import { existsSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { parseFlow } from "../src/conntrack/parse-flow.ts";
import { FakeConntrack, FakeRunner } from "../src/fake/index.ts";
import { type Conntrack, type ConntrackFlow, createConntrack, createRunner, type Runner } from "../src/index.ts";
import { createNamespace } from "../src/netns/index.ts";
import { kernelSuite } from "./kernel-test.ts";

const flow = (change: Partial<ConntrackFlow> = {}): ConntrackFlow => ({
  family: "IPv4",
  protocol: "UDP",
  originalDestination: "10.96.0.10",
  originalPort: 53,
  replySource: "10.144.0.5",
  replyPort: 5353,
  ...change,
});
const v6 = flow({ family: "IPv6", originalDestination: "fd00:10:96::a", replySource: "fd00:144::5" });
const tracked: readonly ConntrackFlow[] = [
  flow(),
  flow(),
  flow({ replySource: "10.144.0.6" }),
  flow({ originalPort: 54 }),
  flow({ replyPort: 53 }),
  flow({ originalDestination: "10.96.0.11" }),
  flow({ protocol: "TCP" }),
  flow({ protocol: "SCTP" }),
  v6,
];

interface Case {
  readonly name: string;
  readonly delete: readonly ConntrackFlow[];
  readonly left: readonly ConntrackFlow[];
}

/** Run on the fake and on the kernel. */
const cases: readonly Case[] = [
  { name: "nothing", delete: [], left: tracked },
  { name: "all clients of one flow, nothing like it", delete: [flow()], left: tracked.slice(2) },
  { name: "the same flow twice", delete: [flow(), flow()], left: tracked.slice(2) },
  { name: "a flow that is not there", delete: [flow({ originalPort: 9 }), flow()], left: tracked.slice(2) },
  { name: "IPv6", delete: [v6], left: tracked.slice(0, -1) },
  {
    name: "SCTP and TCP",
    delete: [flow({ protocol: "SCTP" }), flow({ protocol: "TCP" })],
    left: [...tracked.slice(0, 6), v6],
  },
  { name: "everything", delete: tracked, left: [] },
];

async function listAll(conntrack: Conntrack): Promise<string[]> {
  const found: string[] = [];
  for (const family of ["IPv4", "IPv6"] as const) {
    for (const protocol of ["TCP", "UDP", "SCTP"] as const) {
      for await (const entry of conntrack.list(family, protocol)) found.push(JSON.stringify(entry));
    }
  }
  return found.sort();
}

async function check(conntrack: Conntrack, given: Case): Promise<void> {
  expect(await listAll(conntrack)).toEqual(tracked.map((entry) => JSON.stringify(entry)).sort());
  await conntrack.delete(given.delete);
  expect(await listAll(conntrack)).toEqual(given.left.map((entry) => JSON.stringify(entry)).sort());
}

/** Makes an entry as if a client had sent a packet; each call is another client. */
async function track(runner: Runner, entry: ConntrackFlow, client: number): Promise<void> {
  const source = entry.family === "IPv4" ? "10.144.9.9" : "fd00:144::9";
  const port = String(20_000 + client);
  const state = {
    TCP: ["--state", "ESTABLISHED"],
    UDP: [],
    SCTP: ["--state", "ESTABLISHED", "--orig-vtag", "1", "--reply-vtag", "2"],
  };
  const original = [
    "-s",
    source,
    "-d",
    entry.originalDestination,
    "--sport",
    port,
    "--dport",
    String(entry.originalPort),
  ];
  const reply = [
    "-r",
    entry.replySource,
    "-q",
    source,
    "--reply-port-src",
    String(entry.replyPort),
    "--reply-port-dst",
    port,
  ];
  const more = [...original, ...reply, ...state[entry.protocol]];
  await runner.run(["conntrack", "-I", "-p", entry.protocol.toLowerCase(), "-t", "100", ...more]);
}

describe("in memory", () => {
  test.for(cases)("delete $name", async (given) => {
    const conntrack = new FakeConntrack();
    conntrack.track(...tracked);
    await check(conntrack, given);
  });

  test("killed half way, what came before is gone", async () => {
    const conntrack = new FakeConntrack();
    conntrack.track(flow(), v6);
    conntrack.faults.failNext({ kind: "kill", transactions: 1 });
    await expect(conntrack.delete([flow(), v6])).rejects.toMatchObject({ reason: "signal" });
    expect(conntrack.entries).toEqual([v6]);
  });
});

kernelSuite("on the kernel", () => {
  test.for(cases)("delete $name", async (given) => {
    await using namespace = await createNamespace();
    const runner = createRunner({ prefix: namespace.argvPrefix });
    for (const [client, entry] of tracked.entries()) await track(runner, entry, client);
    await check(createConntrack(runner), given);
  });
});

describe("client", () => {
  test("one process deletes them all, none where there is nothing to delete", async () => {
    const inputs: string[] = [];
    const paths: string[] = [];
    const runner = new FakeRunner({
      conntrack: ([, path = ""]) => {
        inputs.push(readFileSync(path, "utf8"));
        paths.push(path);
        return "";
      },
    });
    await createConntrack(runner).delete([]);
    await createConntrack(runner).delete([flow(), v6, flow()]);
    expect(runner.faults.calls).toHaveLength(1);
    expect(paths.some((path) => existsSync(path))).toBe(false);
    expect(inputs[0]?.split("\n")).toEqual([
      "-D -f ipv4 -p udp --orig-dst 10.96.0.10 --orig-port-dst 53 --reply-src 10.144.0.5 --reply-port-src 5353",
      "-D -f ipv6 -p udp --orig-dst fd00:10:96::a --orig-port-dst 53 --reply-src fd00:144::5 --reply-port-src 5353",
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
      "udp      17 9 src=10.1.1.1 dst=10.96.0.10 sport=1 dport=53 packets=1 bytes=60 src=10.144.0.5 dst=10.1.1.1 sport=5353 dport=1 packets=2 bytes=9 zone=3 use=1",
      {},
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
