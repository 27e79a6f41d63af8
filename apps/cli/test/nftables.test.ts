import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { CommandError, createRunner, type Runner } from "@fairlead/kernel";
import { createNamespace, type NetworkNamespace, namespaceSupport } from "@fairlead/kernel/netns";
import { readTables } from "@fairlead/netfilter/nft";
import { goldenScenario, goldenScenarios } from "@fairlead/testkit";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { loadTables } from "./support/load-tables.ts";
import { fairlead } from "./support/run.ts";

const { CI = "" } = process.env;
const support = await namespaceSupport();
const { objects, nft: recorded } = goldenScenario("10-lb-source-ranges");
const stdin = JSON.stringify(objects);
const NODE = ["--node", "node-a", "--node-address", "10.201.0.10", "--cluster-cidr", "10.144.0.0/16"];
const agent = [...NODE, "--mode", "nftables", "-f", "-"];

const BUNDLE = join(import.meta.dirname, "..", "dist", "main.js");

let folder: string;
let planFile: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "fairlead-"));
  planFile = join(folder, "plan.nft");
  await writeFile(planFile, (await fairlead(["plan", ...agent], { stdin })).out);
});

afterAll(() => rm(folder, { recursive: true }));

async function fileOf(name: string, text: string): Promise<string> {
  const file = join(folder, name);
  await writeFile(file, text);
  return file;
}

/** As an agent's pod: there is no nft, and the built `fairlead` tells what it reads by netlink. */
function withoutNft(inside: Runner): Runner {
  return {
    run: async (argv, options) => {
      const [program, ...args] = argv;
      if (program === "nft") throw new CommandError({ argv, reason: "not-found" });
      return inside.run(program === "fairlead" ? [process.execPath, BUNDLE, ...args] : argv, options);
    },
    stream: (argv, options) => inside.stream(argv, options),
  };
}

describe("plan --mode nftables", () => {
  test("is a table that nft takes, under the command that takes it", async () => {
    const { out, err, code } = await fairlead(["plan", ...agent], { stdin });
    expect({ err, code }).toEqual({ err: "", code: 0 });
    expect(out).toMatch(/^# nft -f -\ntable ip kube-proxy\ndelete table ip kube-proxy\ntable ip kube-proxy \{\n/);
    expect(readTables(out).map(({ family, name }) => `${family} ${name}`)).toEqual(["ip kube-proxy"]);
    expect(out).toContain('10.96.1.10 . tcp . 80 comment "default/lbs" : goto endpoints-');
  });

  test("drops what is sent to ClusterIPs that nobody has, where there is a ServiceCIDR", async () => {
    const range = { apiVersion: "networking.k8s.io/v1", kind: "ServiceCIDR", metadata: { name: "kubernetes" } };
    const more = [...objects, { ...range, spec: { cidrs: ["10.96.0.0/12"] } }];
    const { out } = await fairlead(["plan", ...agent], { stdin: JSON.stringify(more) });
    expect(out).toContain("ip daddr 10.96.0.0/12 drop");
  });
});

describe("trace", () => {
  const to = ["trace", "--node-address", "10.201.0.10", "--from"];

  test("goes through a plan", async () => {
    const { out, code } = await fairlead([...to, "198.51.100.7", "--to", "203.0.113.10:80", "--rules", planFile]);
    expect(code).toBe(0);
    expect(out).toMatch(/→ 10\.144\.1\.5:8080.*masqueraded/);
    expect(out).toMatch(
      / {4}ip kube-proxy firewall-check 1 {2}ip daddr \. meta l4proto \. th dport vmap @firewall-ips/,
    );
  });

  test("goes through what nft listed of kube-proxy", async () => {
    const argv = [...to, "198.51.101.7", "--to", "203.0.113.10:80", "--rules", "-"];
    const { out, code } = await fairlead(argv, { stdin: recorded });
    expect(code).toBe(1);
    expect(out).toContain("drop in PREROUTING, ip kube-proxy");
  });

  test("takes a rule that may not match both ways, and knows what it does where it does", async () => {
    const rule = "limit rate over 5/second drop";
    const stdin = `table ip t {\n\tchain c {\n\t\ttype filter hook prerouting priority raw;\n\t\t${rule}\n\t}\n}\n`;
    const { out } = await fairlead([...to, "198.51.101.7", "--to", "203.0.113.10:80", "--rules", "-"], { stdin });
    expect(out).toContain("drop in PREROUTING, ip t, if ip t c 1 matches");
    expect(out).toContain("→ 203.0.113.10:80, if ip t c 1 does not match");
  });
});

test("explain agrees with kube-proxy's tables and with the own plan", async () => {
  for (const rules of [planFile, await fileOf("recorded.nft", recorded)]) {
    const { err, code } = await fairlead(["explain", "lbs", ...agent, "--rules", rules], { stdin });
    expect({ err, code }).toEqual({ err: "", code: 0 });
  }
});

test("diff: no packet fares otherwise than with kube-proxy", async () => {
  const file = await fileOf("kube-proxy.nft", recorded);
  const { out, code } = await fairlead(["diff", planFile, file, "--traffic-only", "--node-address", "10.201.0.10"]);
  expect(out).toMatch(/^Traffic: the same, \d\d kinds of packets traced\n$/);
  expect(code).toBe(0);
});

describe("verify", () => {
  const verify = (...more: string[]) => fairlead(["verify", ...agent, ...more], { stdin });

  test("nothing differs from the own plan", async () => {
    const { out, err, code } = await verify("--rules", planFile);
    expect({ out, err, code }).toEqual({ out: "nothing differs (IPv4)\n", err: "", code: 0 });
  });

  describe("of what kube-proxy itself has written, which has chains for services where Fairlead has maps", () => {
    const verifyRecorded = async (name: string, change: (text: string) => string = (text) => text) => {
      const { objects: own, nft, node } = goldenScenario(name);
      const rules = ["--rules", await fileOf(`${name}.nft`, change(nft))];
      const as = [
        "--node",
        node.name,
        ...node.addresses.flatMap((one) => ["--node-address", one]),
        "--mode",
        "nftables",
      ];
      const cidrs = ["--cluster-cidr", node.clusterCIDRs.join(), "--agent-flag", "ownership-annotation=false"];
      const ranges = { kind: "ServiceCIDR", metadata: { name: "kubernetes" }, spec: { cidrs: node.serviceCIDRs } };
      const given = [...own, { apiVersion: "networking.k8s.io/v1", ...ranges }];
      return fairlead(["verify", ...as, ...cidrs, "-f", "-", ...rules], { stdin: JSON.stringify(given) });
    };

    test.each(goldenScenarios().map(({ name }) => name))("%s: nothing differs", async (name) => {
      const { out, code } = await verifyRecorded(name);
      expect({ out, code }).toEqual({ out: "nothing differs (IPv4)\n", code: 0 });
    });

    const damages: readonly (readonly [name: string, from: RegExp, to: string, found: RegExp])[] = [
      ["03-three-endpoints", /1 : 10\.144\.2\.6/, "1 : 10.144.2.9", /^default\/web IPv4: different\n {2}~ traffic/],
      ["03-three-endpoints", /10\.96\.1\.3 \. tcp .*,/, "", /^default\/web IPv4: missing\n {2}- map service-ips/],
      ["10-lb-source-ranges", /, 198\.51\.100\.0\/24/, "", /^default\/lbs IPv4: different\n {2}~ traffic/],
      ["03-three-endpoints", /ct state new jump service-endpoints-check/, "accept", /[-+] chain filter-input: /],
    ];

    test.each(damages)("%s: %s in other words is found", async (name, from, to, wanted) => {
      const { out, code } = await verifyRecorded(name, (text) => text.replace(from, to));
      expect(out).toMatch(wanted);
      expect(code).toBe(1);
    });
  });

  test.skipIf(CI === "" && !support.ok).each([
    ["by nft", (inside: Runner) => inside],
    ["by netlink, without nft", withoutNft],
  ])(`of a kernel, %s${support.ok ? "" : ` (${support.reason})`}`, async (_how, reader) => {
    await using namespace: NetworkNamespace = await createNamespace();
    const runner: Runner = createRunner({ prefix: namespace.argvPrefix, env: namespace.env });
    const live = async () => {
      const { out, code } = await fairlead(["verify", ...agent], { stdin, runner: reader(runner) });
      return { out, code };
    };
    const missing = await live();
    expect(missing.out).toContain("- table ip kube-proxy: the table");
    for (const family of ["ipv4", "ipv6"]) {
      const { out } = await fairlead(["plan", ...agent, "--family", family], { stdin });
      await loadTables(namespace, readTables(out));
    }
    expect(await live()).toEqual({ out: "nothing differs (IPv4, IPv6)\n", code: 0 });
    const { stdout: json } = await runner.run(["nft", "-j", "list", "ruleset"]);
    const rules = ["--rules", await fileOf("ruleset.json", json), "--node-address", "10.201.0.10"];
    const traced = await fairlead(["trace", "--from", "198.51.100.7", "--to", "203.0.113.10:80", ...rules]);
    expect(traced.out).toMatch(/→ 10\.144\.1\.5:8080.*masqueraded/);
    await runner.run(["nft", "delete element ip kube-proxy service-ips { 10.96.1.10 . tcp . 80 }"]);
    const damaged = await live();
    expect(damaged.out).toMatch(/^default\/lbs IPv4: different\n {2}- map service-ips: 10\.96\.1\.10 \. tcp \. 80/);
    expect(damaged.code).toBe(1);
    await runner.run(["nft", "add element ip kube-proxy service-ips { 10.96.1.10 . tcp . 80 : goto endpoints-3 }"]);
    expect((await live()).out).toBe("nothing differs (IPv4, IPv6)\n");
    await runner.run(["nft", "-f", "-"], {
      input: "table ip mine { chain c { type filter hook prerouting priority -200; tcp dport 80 drop; }; }",
    });
    expect((await live()).out).toMatch(/~ traffic tcp .*10\.96\.1\.10:80: drop 100 %, expected/);
  });
});
