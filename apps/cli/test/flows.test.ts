import { endpointSlice, service } from "@fairlead/testkit";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { STATES } from "../../../packages/kernel/src/conntrack/messages.ts";
import { CONNTRACK_STATES } from "../src/facts/nodes.ts";
import { CONNECTIONS } from "../src/node/host.ts";
import { AGENT_POD, NodeCluster } from "./support/node-cluster.ts";
import { fairlead } from "./support/run.ts";

const objects = [
  service("web", { namespace: "shop", clusterIPs: ["10.96.0.10"], ports: [{ name: "http", port: 80 }] }),
  endpointSlice("web-1", {
    namespace: "shop",
    service: "web",
    family: "IPv4",
    ports: [{ name: "http", port: 8080 }],
    endpoints: [{ address: "10.144.1.5" }],
  }),
  service("dns", { clusterIPs: ["10.96.0.53"], ports: [{ port: 53, protocol: "UDP" }] }),
];
const entry = (sport: number, answers: string, rest: string) =>
  `tcp 6 100 ESTABLISHED src=10.144.1.9 dst=10.96.0.10 sport=${sport} dport=80 ${rest} src=${answers} dst=10.144.1.9 sport=8080 dport=${sport} ${rest} mark=0 use=1\n`;
const listing =
  entry(1001, "10.144.1.5", "packets=2 bytes=2048") +
  entry(1002, "10.144.9.9", "packets=1 bytes=60") +
  "tcp 6 100 ESTABLISHED src=10.144.1.9 dst=10.144.1.5 sport=1 dport=8080 src=10.144.1.5 dst=10.144.1.9 sport=8080 dport=1\n";
const DNS =
  "udp 17 30 src=10.144.1.9 dst=10.96.0.53 sport=1003 dport=53 [UNREPLIED] src=10.96.0.53 dst=10.144.1.9 sport=53 dport=1003\n";

const cluster = new NodeCluster();
beforeAll(() => cluster.start());
afterAll(() => cluster.stop());

/** A node whose image has conntrack-tools and, unless `own` is what it says, no fairlead. */
function run(command: string, args: readonly string[] = [], events = "", connections = listing, own?: string) {
  cluster.set({
    pods: [AGENT_POD],
    programs: {
      conntrack: "",
      "conntrack -L -f ipv4 -p tcp": connections,
      "conntrack -L -f ipv4 -p udp": DNS,
      "conntrack -E": events,
      ...(own !== undefined && { [`fairlead ${CONNECTIONS} --follow`]: own }),
      ip: "[]",
    },
    endpoint: {},
  });
  return fairlead([command, "-f", "-", "--on", "node-a", "--cluster-cidr", "10.144.0.0/16", ...args], {
    stdin: JSON.stringify(objects),
    env: { KUBECONFIG: cluster.kubeconfig },
  });
}

test("each connection of a service with its endpoint, one that hangs marked, those of no service left out", async () => {
  const { out, err, code } = await run("flows");
  expect(err).toMatch(/^configuration: as the options say; not compared: .*\n$/);
  expect(out).toBe(
    `CLIENT            FRONTEND            SERVICE         ENDPOINT                 OWNER   STATE         SENT      RECEIVED
10.144.1.9:1003   udp 10.96.0.53:53   default/dns     not translated           ours    unreplied     -         -
10.144.1.9:1001   tcp 10.96.0.10:80   shop/web:http   10.144.1.5:8080          ours    established   2.0 KiB   2.0 KiB
10.144.1.9:1002   tcp 10.96.0.10:80   shop/web:http   10.144.9.9:8080 (gone)   ours    established   60 B      60 B
`,
  );
  expect(code).toBe(1);
});

test("--service and --limit choose, and what hangs elsewhere is not a finding then", async () => {
  const { out, code } = await run("flows", ["--service", "shop/web", "--limit", "1", "-o", "json"]);
  expect(JSON.parse(out)).toMatchObject([
    { service: "shop/web", client: { address: "10.144.1.9", port: 1001 }, endpoint: { condition: "ready" } },
  ]);
  expect(code).toBe(0);
  expect((await run("flows", ["--service", "10.96.0.53"])).out).toMatch(/^10\.144\.1\.9:1003 .*default\/dns/m);
});

test("top sums them up, the service with most connections first", async () => {
  const { out, code } = await run("top");
  expect(out).toBe(
    `SERVICE                    OWNER   CONNECTIONS   UNREPLIED   SENT      RECEIVED
shop/web:http tcp          ours    2             0           2.1 KiB   2.1 KiB
  10.144.1.5:8080                  1             0           2.0 KiB   2.0 KiB
  10.144.9.9:8080 (gone)           1             0           60 B      60 B
default/dns udp            ours    1             1           -         -
  not translated                   1             1           -         -
`,
  );
  expect(code).toBe(1);
});

test.each([
  ["flows", "name", "default/dns\nshop/web:http\n"],
  ["top", "name", "shop/web:http\ndefault/dns\n"],
  ["flows", "jsonpath={[*].client.port}", "1003 1001 1002"],
  ["top", "jsonpath={range [*]}{.service}={.connections};{end}", "shop/web=2;default/dns=1;"],
])("%s -o %s", async (command, format, text) => {
  const { out, code } = await run(command, ["-o", format]);
  expect(out).toBe(text);
  expect(code).toBe(1);
});

test.each([
  ["flows", ["SENT", "RECEIVED", "KIND", "NODE", "EXPIRES"], /shop\/web:http .* cluster-ip +- +100 s *$/m],
  ["top", ["SENT", "RECEIVED", "GONE", "NODE"], /shop\/web:http tcp .* 1 *$/m],
])("%s -o wide has what -o table has not", async (command, columns, row) => {
  const { out } = await run(command, ["-o", "wide"]);
  const [head = ""] = out.split("\n");
  expect(head.trimEnd().split(/ +/).slice(-columns.length)).toEqual(columns);
  expect(out).toMatch(row);
  expect((await run(command)).out).not.toContain("NODE");
});

test("--follow prints what begins and ends", async () => {
  const events = `[NEW] ${entry(1004, "10.144.1.5", "[UNREPLIED]")}[UPDATE] ${entry(1004, "10.144.1.5", "")}[DESTROY] ${entry(1004, "10.144.1.5", "packets=3 bytes=180")}`;
  const { out, code } = await run("flows", ["--follow", "--for", "5"], events);
  expect(out).toBe(
    `+ tcp 10.144.1.9:1004 → 10.96.0.10:80 → 10.144.1.5:8080  shop/web:http, ours
- tcp 10.144.1.9:1004 → 10.96.0.10:80 → 10.144.1.5:8080  shop/web:http, ours, 180 B sent, 180 B received
`,
  );
  expect(code).toBe(0);
  const { out: one } = await run("flows", ["--follow", "--limit", "1", "-o", "json"], events);
  expect(JSON.parse(one)).toMatchObject({ event: "new", service: "shop/web", replied: false });
});

test("--follow says once that events were lost, and goes on", async () => {
  const [original, reply] = ["10.96.0.10", "10.144.1.5"].map((address, at) => ({
    ...(at === 0 ? { source: "10.144.1.9", destination: address } : { source: address, destination: "10.144.1.9" }),
    ...(at === 0 ? { sourcePort: 1004, destinationPort: 80 } : { sourcePort: 8080, destinationPort: 1004 }),
  }));
  const connection = { family: "IPv4", protocol: "TCP", original, reply, state: "SYN_SENT", replied: false };
  const events = [{ kind: "lost" }, { kind: "lost" }, { kind: "new", connection }, { kind: "lost" }];
  const own = events.map((event) => `${JSON.stringify(event)}\n`).join("");
  const { out, err } = await run("flows", ["--follow", "--for", "5"], "", listing, own);
  expect(out).toBe("+ tcp 10.144.1.9:1004 → 10.96.0.10:80 → 10.144.1.5:8080  shop/web:http, ours\n");
  expect(err.match(/more events than could be read/g)).toHaveLength(1);
});

test.each([
  [["--limit", "0"], 2, "--limit=0: must be a whole number from 1 on"],
  [["--for", "soon"], 2, "--for=soon: must be a whole number from 1 on"],
  [["--follow", "-o", "yaml"], 2, "--follow: prints a table, or JSON by lines"],
  [["--follow", "-o", "name"], 2, "--follow: prints a table, or JSON by lines"],
  [["-o", "jsonpath={.a"], 2, "a brace has no counterpart"],
  [["--service", "nope"], 3, "--service=nope: there is no such Service with a ClusterIP"],
  [["--service", "a b"], 2, '--service: "a b" must be'],
])("%j", async (args, code, message) => {
  expect(await run("flows", args)).toMatchObject({ code, err: expect.stringContaining(message) });
});

test.each([
  [
    ["-n", "shop"],
    [1001, 1002],
  ],
  [["-n", "shop", "--service", "default/dns"], [1003]],
  [
    ["--from", "10.144.1.0/24"],
    [1003, 1001, 1002],
  ],
  [["--from", "10.144.2.1,fd00::/64"], []],
  [["--to", "10.96.0.53"], [1003]],
  [["--to", "10.144.9.0/24"], [1002]],
  [
    ["--port", "8080", "--port", "53"],
    [1003, 1001, 1002],
  ],
  [["--port", "80", "--to", "10.144.1.5"], [1001]],
  [
    ["--state", "established"],
    [1001, 1002],
  ],
  [
    ["--state", "gone,unreplied"],
    [1003, 1002],
  ],
  [["--state", "time-wait"], []],
])("%j chooses", async (args, ports) => {
  const { out } = await run("flows", [...args, "-o", "json"]);
  expect(JSON.parse(out).map(({ client }: { client: { port: number } }) => client.port)).toEqual(ports);
});

describe("a connection in a flowtable", () => {
  const offloaded = entry(1001, "10.144.1.5", "packets=2 bytes=2048")
    .replace(" 100 ESTABLISHED", "")
    .replace(" mark=0", " [OFFLOAD] mark=0");

  test("is marked, and has its counters", async () => {
    const { out } = await run("flows", ["--to", "10.96.0.10"], "", offloaded);
    expect(out).toMatch(/10\.144\.1\.5:8080 +ours +offloaded +2\.0 KiB +2\.0 KiB\n/);
  });

  test.each(["offloaded", "established", "open"])("--state %s chooses it", async (state) => {
    const { out } = await run("flows", ["--state", state, "-o", "json"], "", offloaded + entry(1002, "10.144.1.5", ""));
    const ports = JSON.parse(out).map(({ client }: { client: { port: number } }) => client.port);
    expect(ports).toContain(1001);
    expect(ports.includes(1002)).toBe(state !== "offloaded");
  });
});

test.each([
  [["--from", "web"], "--from=web: must be an address or a CIDR, such as 10.144.1.5 or 10.144.0.0/16"],
  [["--port", "0"], "--port=0: a port is a number from 1 to 65535"],
  [["--state", "opne"], "--state=opne: must be one of open, offloaded, unreplied, gone, none, syn_sent"],
])("%j is refused", async (args, message) => {
  expect(await run("flows", args)).toMatchObject({ code: 2, err: expect.stringContaining(message) });
});

test("the states that may be asked for are conntrack's", () => {
  expect([...CONNTRACK_STATES].sort()).toEqual(
    [...new Set(Object.values(STATES).flat())].map((name) => name.toLowerCase()).sort(),
  );
});
