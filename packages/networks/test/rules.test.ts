import { describe, expect, test } from "vitest";
import {
  type LastKnown,
  type NetworksDecision,
  parseLastKnown,
  type ServiceRule,
  serializeLastKnown,
  serviceRule,
} from "../src/index.ts";
import { TestServices } from "./services.ts";
import { setup } from "./setup.ts";

const UDN = "k8s.ovn.org/primary-user-defined-network";
const RULES: readonly ServiceRule[] = [{ namespaceLabel: UDN, ownership: "foreign" }];
const labeled = (labels: unknown) => ({ metadata: { labels } });
const services = () => new TestServices({ web: ["10.144.0.5"] });
const LABELED = labeled({ [UDN]: "", other: "x" });

function owner({ filter }: NetworksDecision): string {
  const all = services();
  const web = all.service("default/web");
  if (web === undefined) throw new Error("it was just made");
  return filter.decide(web, "IPv4", all.endpoints("default/web", "IPv4"), undefined).ownership;
}

function started(known?: LastKnown) {
  const made = setup({ settings: { rules: RULES }, ...(known && { known }) });
  made.start();
  return made;
}

describe("rules that ask for labels of namespaces", () => {
  test("the first decision waits for their list", () => {
    const { networks, next } = started();
    expect(networks.ready).toBe(false);
    networks.objects.setNamespace("default", LABELED);
    networks.objects.setNamespacesState("listed");
    expect(networks.ready).toBe(true);
    expect(owner(next(services()))).toBe("foreign");
    expect(networks.report().sources.at(-2)).toEqual({ source: "namespaces", side: "rules", state: "listed" });
  });

  test("a label that comes or goes touches the services of its namespace; another label touches nothing", () => {
    const { networks, next } = started();
    networks.objects.setNamespacesState("listed");
    const before = next(services());
    expect(owner(before)).toBe("ours");
    networks.objects.setNamespace("default", labeled({ other: "x" }));
    expect(networks.due).toBeUndefined();
    networks.objects.setNamespace("default", LABELED);
    const after = next(services());
    expect([owner(after), [...after.touched]]).toEqual(["foreign", ["default/web"]]);
    expect(owner(before)).toBe("ours");
    networks.objects.setNamespace("default", undefined);
    expect(owner(next(services()))).toBe("ours");
  });

  test.each([null, 7, { metadata: null }, labeled([]), labeled({ [UDN]: 7 }), labeled({ __proto__: { [UDN]: "" } })])(
    "garbage is a namespace without the label: %j",
    (raw) => {
      const { networks, next } = started();
      networks.objects.setNamespace("default", raw);
      networks.objects.setNamespacesState("listed");
      expect(owner(next(services()))).toBe("ours");
    },
  );

  test("what was known before counts until a list says otherwise; forbidden says nothing", () => {
    const before = started();
    before.networks.objects.setNamespace("default", LABELED);
    before.networks.objects.setNamespacesState("listed");
    before.next(services());
    const { known } = parseLastKnown(serializeLastKnown(before.networks.lastKnown()));
    const { networks, next } = started(known);
    expect(networks.ready).toBe(true);
    networks.objects.setNamespacesState("forbidden");
    expect(owner(next(services()))).toBe("foreign");
    networks.objects.setNamespacesState("listed");
    expect(owner(next(services()))).toBe("ours");
  });

  test("without such a rule namespaces are neither waited for nor kept", () => {
    const { networks } = setup({ settings: { rules: [{ annotation: "a", ownership: "ours" }] } });
    networks.objects.setNamespace("default", LABELED);
    networks.objects.setNamespacesState("listed");
    expect(networks.lastKnown()).not.toHaveProperty("namespaces");
    expect(networks.report().sources.map(({ source }) => source)).not.toContain("namespaces");
  });
});

const ALL_RULES: readonly ServiceRule[] = [
  { annotation: "ovn.kubernetes.io/vpc", notIn: ["ovn-cluster"], ownership: "foreign" },
  { namespaceLabel: "k8s.ovn.org/primary-user-defined-network", ownership: "foreign" },
  { namespaceLabel: "team", in: ["net"], ownership: "ours" },
];
const VPC = "annotation ovn.kubernetes.io/vpc not in ovn-cluster: foreign";

test("a rule says what of a Service is left to its network", () => {
  const service = new TestServices({ web: [] }).service("default/web");
  if (service === undefined) throw new Error("it was just made");
  const rule = { namespaceLabel: "tenant", ownership: "foreign", excludedFrontends: "excluded-clients" } as const;
  expect(serviceRule([rule], () => ({ tenant: "" }))(service)).toMatchObject({ excludedFrontends: "excluded-clients" });
});

test.each([
  ["another VPC", { "ovn.kubernetes.io/vpc": "blue" }, {}, VPC],
  ["the default VPC", { "ovn.kubernetes.io/vpc": "ovn-cluster" }, {}, undefined],
  [
    "a label without a value",
    {},
    { "k8s.ovn.org/primary-user-defined-network": "" },
    "namespace label k8s.ovn.org/primary-user-defined-network: foreign",
  ],
  ["a label of the list", {}, { team: "net" }, "namespace label team in net: ours"],
  ["a label not of the list", {}, { team: "web" }, undefined],
  ["the first rule wins", { "ovn.kubernetes.io/vpc": "blue" }, { team: "net" }, VPC],
  ["a namespace that is not known", {}, undefined, undefined],
  ["names that every object has", {}, {}, undefined],
])("%s", (_what, annotations, labels, rule) => {
  const service = new TestServices({ web: [] }).service("default/web");
  if (service === undefined) throw new Error("it was just made");
  const found = serviceRule(ALL_RULES, () => labels)({ ...service, annotations });
  expect(found?.why).toBe(rule && `rule: ${rule}`);
});
