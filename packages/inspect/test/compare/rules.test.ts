import { toEnd } from "@fairlead/base";
import type { SavedRules } from "@fairlead/netfilter";
import { goldenScenario } from "@fairlead/testkit";
import { describe, expect, test } from "vitest";
import { byService, compareRules, renamedServices, restored, savedRules, servicesIn } from "../../src/index.ts";

const { iptables } = goldenScenario("10-lb-source-ranges");

const saved = (text: string) => savedRules(text, "IPv4");

const compared = (expected: SavedRules, actual: SavedRules) => toEnd(compareRules(expected, actual));

/** `service kind: where`, for each finding of the damaged rules. */
function found(damage: (text: string) => string): string[] {
  const text = damage(iptables);
  expect(text).not.toBe(iptables);
  return compared(saved(iptables), saved(text)).map(({ service = "-", kind, where }) => `${service} ${kind}: ${where}`);
}

const SVC = "KUBE-SVC-FYZB2HTOW53NRIPL";

describe("what is found", () => {
  test.each<[what: string, damage: (text: string) => string, expected: string[]]>([
    ["nothing, where only counters differ", (text) => text.replaceAll(/\[\d+:\d+\]/g, "[7:420]"), []],
    [
      "nothing, of others' chains",
      (text) => text.replace("*nat\n", "*nat\n:DOCKER - [0:0]\n-A DOCKER -j RETURN\n"),
      [],
    ],
    [
      "nothing, of others' rules",
      (text) => text.replace("-A POSTROUTING", "-A POSTROUTING -s 172.17.0.0/16 -j MASQUERADE\n-A POSTROUTING"),
      [],
    ],
    [
      "nothing, of chains that nothing leads to",
      (text) => text.replace("*nat\n", "*nat\n:KUBE-SEP-AAAAAAAAAAAAAAAA - [0:0]\n"),
      [],
    ],
    [
      "nothing, where rules for different addresses change places",
      (text) => text.replace(/^(-A KUBE-SERVICES -d 10.96.0.1.*\n)(-A KUBE-SERVICES -d 10.96.1.10.*\n)/m, "$2$1"),
      [],
    ],
    [
      "nothing, where kubelet's jump stands elsewhere",
      (text) =>
        text.replace(
          /^(-A INPUT .*\n)(-A INPUT -j KUBE-FIREWALL\n)|^(-A INPUT -j KUBE-FIREWALL\n)(-A INPUT .*\n)/m,
          "$4$2$3$1",
        ),
      [],
    ],
    [
      "a rule that is gone",
      (text) => text.replace(/^-A KUBE-SEP-\S+ -s 10.144.1.5.*\n/m, ""),
      ["default/lbs missing: nat KUBE-SEP-FWVBJR4X2TYGP22X"],
    ],
    [
      "an order that matters",
      (text) => text.replace(/^(.* 0.50000000000 .*\n)(.*\n)/m, "$2$1"),
      [`default/lbs different: nat ${SVC}`],
    ],
    [
      "a rule too much",
      (text) => text.replace(`-A ${SVC} ! -s`, `-A ${SVC} -s 192.0.2.9/32 -j ACCEPT\n-A ${SVC} ! -s`),
      [`default/lbs extra: nat ${SVC}`],
    ],
    ["a jump that is gone", (text) => text.replace(/^-A OUTPUT .*KUBE-SERVICES\n/m, ""), ["- missing: filter OUTPUT"]],
    [
      "the last rule that is not the last",
      (text) => text.replace(/^(-A KUBE-SERVICES -d 203.0.113.10.*\n)(-A KUBE-SERVICES .*KUBE-NODEPORTS\n)/m, "$2$1"),
      ["default/lbs different: nat KUBE-SERVICES"],
    ],
  ])("%s", (_, damage, expected) => expect(found(damage)).toEqual(expected));

  test("a chain that is gone, with what leads to it", () => {
    const all = found((text) =>
      text
        .split("\n")
        .filter((line) => !line.includes("KUBE-FW-"))
        .join("\n"),
    );
    expect(all).toContain("default/lbs missing: nat KUBE-FW-FYZB2HTOW53NRIPL");
    expect(all).toContain("default/lbs missing: nat KUBE-SERVICES");
  });

  test("a service that is not in the plan", () => {
    const findings = compared(
      saved(
        iptables
          .split("\n")
          .filter((line) => !/FYZB|lbs|M6RG|FWVB/.test(line))
          .join("\n"),
      ),
      saved(iptables),
    );
    expect(
      byService(findings, new Set(["default/kubernetes:https"]), toEnd(servicesIn(saved(iptables)))),
    ).toMatchObject([{ service: "default/lbs", kind: "extra" }]);
  });

  test("other names of chains are distinguished from what is missing", () => {
    const renamed = compared(saved(iptables), saved(iptables.replaceAll(SVC, "KUBE-SVC-OTHERNAMEOTHERNA")));
    expect(renamedServices(renamed)).toEqual(new Set(["default/lbs"]));
  });
});

describe("payloads", () => {
  test("fill empty tables: chains, rules, rules at their places", () => {
    const payload =
      "*nat\n:A - [0:0]\n-A A -j RETURN\n-I OUTPUT 1 -j A\n-I OUTPUT 1 -p tcp -j A\nCOMMIT\n*nat\n-A A -j ACCEPT\nCOMMIT\n";
    const rules = toEnd(restored([payload], "IPv4"));
    const chains = rules.get("nat")?.chains;
    expect(chains?.get("A")?.texts).toEqual(["-j RETURN", "-j ACCEPT"]);
    expect(chains?.get("OUTPUT")?.texts).toEqual(["-p tcp -j A", "-j A"]);
  });

  test("that delete are refused", () => {
    expect(() => toEnd(restored(["*nat\n-D OUTPUT -j A\nCOMMIT\n"], "IPv4"))).toThrow(
      "does more than fill empty tables",
    );
  });
});

test("dispatch chains of thousands of rules are compared by address", () => {
  const rule = (at: number, chain = `KUBE-SVC-${at}`) =>
    `-A KUBE-SERVICES -d 10.96.${at >> 8}.${at & 255}/32 -p tcp -m comment --comment "team/service-${at} cluster IP" -m tcp --dport 80 -j ${chain}\n`;
  const last = "-A KUBE-SERVICES -m addrtype --dst-type LOCAL -j KUBE-NODEPORTS\n";
  const text = (rules: readonly string[]) => saved(`*nat\n:KUBE-SERVICES - [0:0]\n${rules.join("")}COMMIT\n`);
  const numbers = Array.from({ length: 5_000 }, (_, at) => at);
  const expected = text([...numbers.map((at) => rule(at)), last]);
  expect(compared(expected, text([...numbers.toReversed().map((at) => rule(at)), last]))).toEqual([]);
  const wrong = numbers.toReversed().map((at) => rule(at, at === 7 ? "KUBE-SVC-8" : undefined));
  expect(compared(expected, text([...wrong, last])).map(({ kind, service }) => `${kind} ${service}`)).toEqual([
    "missing team/service-7",
    "extra team/service-7",
  ]);
  expect(compared(expected, text([last, ...numbers.map((at) => rule(at))])).length).toBeGreaterThan(0);
});

test("a step of a comparison is one chain, a step of a payload one piece of it", () => {
  const chains = Array.from({ length: 5_000 }, (_, at) => `KUBE-SVC-${at}`);
  const declared = chains.map((name) => `:${name} - [0:0]\n`).join("");
  const to = (port: number) =>
    chains.map((name) => `-A ${name} -p tcp -m tcp -j DNAT --to-destination 10.144.1.5:${port}\n`).join("");
  const payload = (port: number) => `*nat\n${declared}${to(port)}COMMIT\n`;
  const pieces = payload(8080).split(/(?<=KUBE-SVC-1234 )/);
  expect([...restored(pieces, "IPv4")]).toHaveLength(pieces.length);
  const comparison = compareRules(toEnd(restored(pieces, "IPv4")), saved(payload(9090)));
  // One for a chain that is wanted and one for each that is there.
  expect([...comparison]).toHaveLength(2 * chains.length);
  expect([...servicesIn(saved(payload(9090)))]).toHaveLength(chains.length);
});
