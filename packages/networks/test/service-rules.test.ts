import { expect, test } from "vitest";
import { type ServiceRule, serviceRule } from "../src/index.ts";
import { TestServices } from "./services.ts";

const RULES: readonly ServiceRule[] = [
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
  const found = serviceRule(RULES, () => labels)({ ...service, annotations });
  expect(found?.why).toBe(rule && `rule: ${rule}`);
});
