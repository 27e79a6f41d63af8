import { dirname } from "node:path";
import { goldenScenario, goldenScenarios, type RawObject, service } from "@fairlead/testkit";
import { describe, expect, test } from "vitest";
import { fileOf } from "./support/files.ts";
import { fairlead } from "./support/run.ts";

const AGENT = ["--node", "node-a", "--node-address", "10.201.0.10", "--cluster-cidr", "10.144.0.0/16,fd00:144::/48"];

async function diff(a: string, b: string, ...args: string[]) {
  const { code, out, err } = await fairlead(["diff", a, b, "-o", "json", ...AGENT, ...args]);
  return { code, err, answer: out === "" ? undefined : JSON.parse(out) };
}

async function planText(objects: readonly RawObject[], ...args: string[]): Promise<string> {
  return (await fairlead(["plan", "-f", "-", ...AGENT, ...args], { stdin: JSON.stringify(objects) })).out;
}

describe("golden scenarios: the plan of the objects, printed or not, and kube-proxy's rules are one", () => {
  test.each(goldenScenarios())("$name", async ({ objects, iptables }) => {
    const rules = fileOf(iptables);
    const plan = fileOf(await planText(objects));
    const manifests = fileOf(objects, "manifests.json");
    expect(await diff(plan, rules)).toMatchObject({ code: 0, answer: { traffic: { changes: [] }, rules: [] } });
    const planned = await diff(manifests, rules, "--traffic-only");
    expect(planned).toMatchObject({ code: 0, answer: { traffic: { changes: [] } } });
    expect(planned.answer.traffic.compared).toBeGreaterThan(0);
  });
});

test("a node with addresses of both families: each is asked for with its own", async () => {
  const { objects } = goldenScenario("26-dual-nodeport");
  const manifests = fileOf(objects, "dual.json");
  const dual = ["--node-address", "10.201.0.10", "--node-address", "fd00:201::10", "--traffic-only"];
  for (const family of ["ipv4", "ipv6"]) {
    const { code, err, answer } = await diff(manifests, manifests, "--family", family, ...dual);
    expect([code, err, answer.traffic.changes]).toEqual([0, "", []]);
    expect(answer.traffic.compared).toBeGreaterThan(0);
  }
});

test("ipvs mode's plan and iptables mode's do the same with packets, if not by the same rules", async () => {
  const { objects } = goldenScenario("09-loadbalancer");
  const iptables = fileOf(await planText(objects));
  const ipvs = fileOf(await planText(objects, "--mode", "ipvs"));
  expect((await diff(iptables, ipvs, "--traffic-only")).code).toBe(0);
  expect((await diff(iptables, ipvs)).answer.rules).not.toEqual([]);
});

test("a service less in a folder of manifests: its traffic is untouched, nothing else is said", async () => {
  const { objects } = goldenScenario("05-nodeport");
  const less = objects.filter(({ metadata }) => metadata.name !== "np");
  const [before, after] = [objects, less].map((all) => dirname(fileOf(all, "all.json")));
  const { code, answer } = await diff(before ?? "", after ?? "");
  expect(code).toBe(1);
  const destinations = answer.traffic.changes.map(({ destination }: { destination: string }) => destination);
  expect([...new Set(destinations)].sort()).toEqual(["tcp 10.96.1.5:80", "tcp node port 30105"]);
  for (const { after: now } of answer.traffic.changes) expect(now).toEqual({ ways: { untouched: 1 } });
  expect(answer.rules.length).toBeGreaterThan(0);
});

test("the text for people: packets before rules", async () => {
  const { iptables } = goldenScenario("05-nodeport");
  const before = fileOf(iptables);
  const after = fileOf(iptables.replace("0.50000000000", "0.25000000000"));
  const { out } = await fairlead(["diff", before, after, ...AGENT]);
  expect(out).toMatch(/tcp node port 30105 from 10\.144\.0\.0\/16, the node, elsewhere/);
  expect(out.indexOf("25 %")).toBeGreaterThan(0);
  expect(out.indexOf("Rules:")).toBeGreaterThan(out.lastIndexOf("25 %"));
});

describe("tables of nftables", () => {
  const FORWARD = (rules: string) =>
    `table ip firewall {\n\tchain forward {\n\t\ttype filter hook forward priority filter; policy accept;\n${rules}\t}\n}\n`;
  const BEFORE = FORWARD("\t\ttcp dport 22 accept\n");

  test.each([
    ["an address and a port", "ip daddr 10.144.1.5 tcp dport 8080 drop", "tcp 10.144.1.5:8080"],
    ["a set of ports", "ip daddr 10.96.0.10 tcp dport { 53, 443 } drop", "tcp 10.96.0.10:443"],
    ["pairs", "ip daddr . tcp dport { 10.96.0.10 . 80 } drop", "tcp 10.96.0.10:80"],
  ])("a rule that drops %s is found, as it is in iptables' text", async (_what, rule, destination) => {
    const a = fileOf(BEFORE);
    const b = fileOf(FORWARD(`\t\ttcp dport 22 accept\n\t\t${rule}\n`));
    const { code, answer } = await diff(a, b);
    expect(code).toBe(1);
    const changes: readonly { destination: string; after: object }[] = answer.traffic.changes;
    expect(changes.find((one) => one.destination === destination)?.after).toEqual({ ways: { drop: 1 } });
    expect(answer.tables).toMatchObject([{ table: "ip firewall", kind: "extra", where: "chain forward" }]);
  });

  test("a rule that packets to no single place meet is reported all the same", async () => {
    const a = fileOf(BEFORE);
    const b = fileOf(FORWARD("\t\ttcp dport 22 accept\n\t\tip saddr 10.0.0.0/8 drop\n"));
    const { out, code } = await fairlead(["diff", a, b, ...AGENT]);
    expect(out).toContain("ip firewall chain forward: + ip saddr 10.0.0.0/8 drop");
    expect(code).toBe(1);
    expect((await diff(a, a)).code).toBe(0);
  });
});

describe("-n", () => {
  test("compares one namespace of manifests", async () => {
    const { objects } = goldenScenario("05-nodeport");
    const web = service("web", { namespace: "elsewhere", clusterIPs: ["10.96.9.9"], ports: [{ port: 80 }] });
    const [a, b] = [fileOf(objects, "all.json"), fileOf([...objects, web], "more.json")];
    const changed = async (...more: readonly string[]) => (await diff(a, b, "--traffic-only", ...more)).code;
    expect(await changed("-n", "default")).toBe(0);
    expect(await changed("-n", "elsewhere")).toBe(1);
    expect(await changed("-n", "nowhere")).toBe(3);
  });

  test("is refused where a side is rules, which do not say of which namespace they are", async () => {
    const { iptables } = goldenScenario("05-nodeport");
    const file = fileOf(iptables);
    const { code, err } = await fairlead(["diff", file, "node", "-n", "shop", ...AGENT]);
    expect(err).toMatch(
      /^--namespace: only for manifests and the word cluster; fairlead verify -n compares a kernel\n/,
    );
    expect(code).toBe(2);
  });
});

describe("what cannot be compared", () => {
  test.each([
    ["a file that is not there", "/does/not/exist", /^\/does\/not\/exist: no such file or folder/],
    ["a listing that is cut off", "*nat\n:PREROUTING ACCEPT [0:0]\n", /cut: .*nat/],
  ])("%s", async (_what, content, message) => {
    const a = content.startsWith("/") ? content : fileOf(content, "cut");
    const { code, err } = await diff(a, a);
    expect(err).toMatch(message);
    expect(code).toBe(3);
  });
});
