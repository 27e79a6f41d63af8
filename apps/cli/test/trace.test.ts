import { createRunner, type Runner } from "@fairlead/kernel";
import { createNamespace, type NetworkNamespace, namespaceSupport } from "@fairlead/kernel/netns";
import { goldenScenario, goldenScenarios } from "@fairlead/testkit";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { fairlead } from "./support/run.ts";

const { CI = "" } = process.env;
const support = await namespaceSupport();
const FACTS = ["--cluster-cidr", "10.144.0.0/16", "--node-address", "10.201.0.10"];
const over = (rules: string, ...more: readonly string[]) =>
  fairlead(["trace", "--rules", "-", ...FACTS, ...more], { stdin: rules });
const { iptables } = goldenScenario("10-lb-source-ranges");

interface Told {
  readonly outcomes: readonly {
    readonly verdict: string;
    readonly probability: number;
    readonly masqueraded: boolean;
    readonly destination: { readonly address: string; readonly port: number };
  }[];
}

function ends(out: string): string[] {
  const { outcomes }: Told = JSON.parse(out);
  return outcomes.map(
    ({ verdict, probability, masqueraded, destination: { address, port } }) =>
      `${verdict} ${address}:${port} ${probability}${masqueraded ? " masqueraded" : ""}`,
  );
}

describe("over the real kube-proxy's rules", () => {
  test.each([
    ["pod", "10.96.1.10:80", ["accept 10.144.1.5:8080 0.5", "accept 10.144.2.6:8080 0.5"], 0],
    [
      "outside",
      "10.96.1.10:80",
      ["accept 10.144.1.5:8080 0.5 masqueraded", "accept 10.144.2.6:8080 0.5 masqueraded"],
      0,
    ],
    [
      "node",
      "10.96.1.10:80/tcp",
      ["accept 10.144.1.5:8080 0.5 masqueraded", "accept 10.144.2.6:8080 0.5 masqueraded"],
      0,
    ],
    ["192.0.2.7", "203.0.113.10:80", ["drop 203.0.113.10:80 1"], 1],
    [
      "198.51.100.7",
      "203.0.113.10:80",
      ["accept 10.144.1.5:8080 0.5 masqueraded", "accept 10.144.2.6:8080 0.5 masqueraded"],
      0,
    ],
    [
      "outside",
      "10.201.0.10:30110",
      ["accept 10.144.1.5:8080 0.5 masqueraded", "accept 10.144.2.6:8080 0.5 masqueraded"],
      0,
    ],
    ["pod", "10.96.1.10:81", ["accept 10.96.1.10:81 1"], 0],
  ])("from %s to %s", async (from, to, expected, exit) => {
    const { out, code } = await over(iptables, "--from", from, "--to", to, "-o", "json");
    expect(ends(out)).toEqual(expected);
    expect(code).toBe(exit);
  });

  test("the text names each rule with its place, and its line in the text", async () => {
    const { out } = await over(iptables, "--from", "pod", "--to", "10.96.1.10:80");
    const [, chain, number, line] = /nat (KUBE-SEP-\S+) (\d+) \(line (\d+)\) .*10\.144\.1\.5:8080/.exec(out) ?? [];
    expect(iptables.split("\n")[Number(line) - 1]).toContain(`-A ${chain} `);
    expect(iptables.split("\n").filter((one) => one.startsWith(`-A ${chain} `))[Number(number) - 1]).toContain(
      "10.144.1.5:8080",
    );
    expect(out).toContain("50 % → 10.144.1.5:8080");
  });

  test.each(goldenScenarios().map(({ name, iptables: rules }) => [name, rules]))(
    "%s: to every address and port that it names",
    async (_, rules) => {
      const named = [...rules.matchAll(/^-A KUBE-SERVICES -d (\S+)\/32 -p (tcp|udp) .*--dport (\d+)/gm)];
      for (const [, address, protocol, port] of named) {
        const { out } = await over(rules, "--from", "pod", "--to", `${address}:${port}/${protocol}`, "-o", "json");
        for (const end of ends(out)) expect(end).not.toContain(`accept ${address}:`);
      }
    },
  );
});

test("what cannot be decided is told, never guessed", async () => {
  const rules =
    "*filter\n:INPUT DROP [0:0]\n-A INPUT -p tcp -m tcp --dport 22 -m limit --limit 6/min -j ACCEPT\nCOMMIT\n";
  const { out, code } = await over(rules, "--from", "outside", "--to", "10.201.0.10:22");
  expect(out).toContain("if filter INPUT 1 (line 3) matches");
  expect(out).toContain("if filter INPUT 1 (line 3) does not match");
  expect(code).toBe(1);
});

test.each([
  [["--to", "10.96.0.1"], "--to=10.96.0.1: must be ADDRESS:PORT/PROTOCOL"],
  [["--to", "10.96.0.1:70000"], "--to=70000: a port is a number from 1 to 65535"],
  [["--to", "10.96.0.1:80", "--from", "nobody"], "--from=nobody: must be an address, pod, node or outside"],
  [["--to", "10.96.0.1:80", "--from", "fd00::1"], "--from=fd00::1: must be IPv4, as --to is"],
  [["--to", "[fd00::1]:80", "--from", "pod"], "--from=pod: give the pods' IPv6 CIDR with --cluster-cidr"],
  [["--to", "10.96.0.1:80", "--route", "10.0.0.0/8"], "--route=10.0.0.0/8: must be CIDR=INTERFACE"],
  [["--to", "10.96.0.1:80", "--watch"], "--watch follows packets of this host: leave out --rules and --on"],
  [["--to", "10.96.0.1:80", "--live"], "only one of them"],
])("%j is refused", async (more, problem) => {
  const { err, code } = await over(iptables, ...more);
  expect(err).toContain(problem);
  expect(code).toBe(2);
});

describe.skipIf(CI === "" && !support.ok)(`on a real kernel${support.ok ? "" : ` (${support.reason})`}`, () => {
  let namespace: NetworkNamespace;
  let runner: Runner;

  beforeAll(async () => {
    namespace = await createNamespace();
    runner = createRunner({ prefix: namespace.argvPrefix, env: namespace.env });
    await runner.run(["ip", "link", "add", "cali1", "type", "veth", "peer", "name", "pod1"]);
    await runner.run(["ip", "link", "set", "cali1", "up"]);
    await runner.run(["ip", "address", "add", "10.201.0.10/24", "dev", "lo"]);
    await runner.run(["ip", "route", "add", "10.144.1.0/24", "dev", "cali1"]);
    await runner.run(["ip", "route", "add", "10.144.2.0/24", "dev", "cali1"]);
    await runner.run(["ip", "route", "add", "10.96.0.0/16", "dev", "cali1", "src", "10.201.0.10"]);
    await runner.run(["sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward"]);
    await runner.run(["ip", "link", "set", "pod1", "up"]);
    const rules = iptables.replaceAll(/ -m nfacct --nfacct-name +\S+/g, "");
    await runner.run(["iptables-nft-restore"], { input: rules });
  });
  afterAll(() => namespace.dispose());

  test("addresses and routes are the host's own", async () => {
    const { out } = await fairlead(["trace", "--from", "10.144.1.9", "--to", "10.96.1.10:80", "-o", "json"], {
      runner,
    });
    expect(JSON.parse(out)).toMatchObject({
      packet: { inInterface: "cali1" },
      outcomes: [{ outInterface: "cali1" }, { outInterface: "cali1" }],
    });
    const port = await fairlead(["trace", "--from", "outside", "--to", "10.201.0.10:30110", "-o", "json"], { runner });
    expect(ends(port.out)).toHaveLength(2);
  });

  /** Asks for 10.96.1.10:80 until what is watched has told of it. */
  async function watched(wanted: RegExp): Promise<string> {
    const stop = new AbortController();
    let seen = "";
    const watching = fairlead(["trace", "--watch", "--from", "node", "--to", "10.96.1.10:80"], {
      runner,
      signal: stop.signal,
      onOut: (text) => {
        seen += text;
        if (wanted.test(seen)) stop.abort();
      },
    });
    const ask = async (): Promise<void> => {
      const script = `const s = require("net").connect(80, "10.96.1.10"); s.on("error", () => {}); setTimeout(() => process.exit(0), 300);`;
      await runner.run([process.execPath, "-e", script]);
      if (!stop.signal.aborted) await ask();
    };
    await Promise.race([ask(), watching]);
    expect(await watching).toMatchObject({ code: 0 });
    return seen;
  }

  test("--watch follows a packet rule by rule, or its connection", { timeout: 60_000 }, async () => {
    const wanted = /KUBE-SERVICES|10\.96\.1\.10/;
    expect(await watched(wanted)).toMatch(wanted);
    expect((await runner.run(["iptables-nft", "-t", "raw", "-S"])).stdout).not.toContain("TRACE");
  });

  test("--watch where rules are the legacy variant's: connections, and where they go", {
    timeout: 60_000,
  }, async () => {
    const nothing = "*nat\nCOMMIT\n*filter\nCOMMIT\n*mangle\nCOMMIT\n";
    const rules = iptables.replaceAll(/ -m nfacct --nfacct-name +\S+/g, "");
    await runner.run(["iptables-nft-restore"], { input: nothing });
    await runner.run(["iptables-legacy-restore"], { input: rules });
    try {
      const translated = /dst=10\.96\.1\.10 .* src=10\.144\.\d+\.\d+ dst=10\.201\.0\.10 sport=8080 /;
      expect(await watched(translated)).toMatch(translated);
    } finally {
      await runner.run(["iptables-legacy-restore"], { input: nothing });
      await runner.run(["iptables-nft-restore"], { input: rules });
    }
  });

  test("doctor looks at it, and says what to do", { timeout: 30_000 }, async () => {
    await runner.run(["nft", "add", "table", "inet", "firewalld"]);
    const { out, code } = await fairlead(
      ["doctor", "--cluster-cidr", "10.144.0.0/16", "--service-cidr", "10.144.9.0/24", "-o", "json"],
      { runner, env: { KUBECONFIG: "/nowhere" } },
    );
    const found: readonly { readonly check: string; readonly state: string; readonly found: string }[] =
      JSON.parse(out);
    const of = (check: string) => found.find((one) => one.check === check);
    expect(of("iptables")).toMatchObject({ state: "good" });
    expect(of("nft tables of others")).toMatchObject({ state: "warning", found: "inet firewalld" });
    expect(of("connection tracking")).toMatchObject({ state: "good" });
    expect(of("route to pods in 10.144.0.0/16")).toMatchObject({ state: "good" });
    expect(of("CIDRs of services")).toMatchObject({ state: "bad", found: expect.stringContaining("10.144.9.0/24") });
    expect(of("API server")).toMatchObject({ state: "bad" });
    expect(code).toBe(1);
  });
});
