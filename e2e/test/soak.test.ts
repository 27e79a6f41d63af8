import fc from "fast-check";
import { expect, test } from "vitest";
import {
  type Drawn,
  drawSteps,
  findingsIn,
  firstModel,
  type SoakModel,
  type SoakScope,
  type SoakStep,
  servingPods,
} from "../src/specs/soak-model.ts";

const SCOPE: SoakScope = { modes: ["iptables", "nftables"], hardships: ["agents killed", "watches cut"] };

function drawn(seed: number, count: number, what = SCOPE): readonly Drawn[] {
  const steps = drawSteps(seed, what);
  return Array.from({ length: count }, () => steps.next().value);
}

function finds(step: SoakStep, { mode, services, pods, neighbors, furtherAddresses }: SoakModel): boolean {
  switch (step.kind) {
    case "service removed":
      return services.includes(step.service);
    case "pod added":
      return services.includes(step.pod.app);
    case "pod removed":
      return pods.some(({ name }) => name === step.pod);
    case "readiness changed":
      return pods.some(({ name, ready }) => name === step.pod && ready !== step.ready);
    case "mode switched":
      return step.mode !== mode;
    case "neighbor writes":
      return !neighbors.includes(step.node);
    case "neighbor removes":
      return neighbors.includes(step.node);
    case "node address added":
      return !furtherAddresses.includes(step.node);
    case "node address removed":
      return furtherAddresses.includes(step.node);
    default:
      return true;
  }
}

test("a seed has its steps, another one others", () => {
  expect(drawn(7, 50)).toEqual(drawn(7, 50));
  expect(drawn(7, 50)).not.toEqual(drawn(8, 50));
});

test("each step finds what it needs, and leaves a cluster that the next can start from", () => {
  fc.assert(
    fc.property(fc.integer(), (seed) => {
      let before = firstModel("iptables");
      for (const { step, model } of drawn(seed, 60)) {
        expect(finds(step, before), JSON.stringify(step)).toBe(true);
        const names = [...model.services, ...model.pods.map(({ name }) => name)];
        expect(new Set(names).size).toBe(names.length);
        before = model;
      }
    }),
  );
});

test("three hundred steps have every kind among them", () => {
  const kinds = new Set(drawn(1, 300).map(({ step }) => step.kind));
  expect([...kinds].sort()).toEqual([
    "agents killed",
    "damaged by hand",
    "mode switched",
    "neighbor removes",
    "neighbor writes",
    "node address added",
    "node address removed",
    "pod added",
    "pod removed",
    "readiness changed",
    "service added",
    "service removed",
    "watches cut",
  ]);
});

test("a cluster of one mode, which knows no hardship, has the rest", () => {
  const kinds = new Set(drawn(1, 300, { modes: ["nftables"], hardships: [] }).map(({ step }) => step.kind));
  expect(kinds).not.toContain("mode switched");
  expect(kinds).toContain("damaged by hand");
});

test("only pods that are ready have to answer for their service", () => {
  const pod = { app: "web", node: 0, ready: true };
  const pods = [
    { ...pod, name: "a" },
    { ...pod, name: "b", ready: false },
    { ...pod, name: "c", app: "other" },
  ];
  expect(servingPods({ ...firstModel("iptables"), pods }, "web")).toEqual(["a"]);
});

test("of what verify finds, others' masquerade does not count", () => {
  const traffic = { kind: "different", where: "traffic tcp 10.143.255.254 → 10.96.0.1:443" };
  const notes = [
    { ...traffic, what: "172.30.0.1:6443 masqueraded 100 %, expected 172.30.0.1:6443 100 %", others: true },
  ];
  const findings = [
    { ...traffic, what: "unanswered 100 %, expected 172.30.0.1:6443 100 %" },
    { kind: "missing", service: "default/web:http", where: "nat KUBE-SERVICES", what: "-d 10.96.0.9/32" },
  ];
  const reports = [{ family: "IPv4", services: [{ kind: "different", findings }], notes }];
  expect(findingsIn(JSON.stringify(reports))).toEqual([
    "different  traffic tcp 10.143.255.254 → 10.96.0.1:443: unanswered 100 %, expected 172.30.0.1:6443 100 %",
    "missing default/web:http nat KUBE-SERVICES: -d 10.96.0.9/32",
  ]);
});
