import { describe, expect } from "vitest";
import { createIptablesBackend } from "../src/index.ts";
import { clusterIPGroup, endpoints, planOf } from "./support/groups.ts";
import { kernelTest, type TestKernel } from "./support/real-kernel.ts";

const MARK = "-m mark --mark 0x4000/0x4000";

/** What an operator does by hand to a chain of ours, as arguments of iptables. */
const EDITS: readonly (readonly string[])[] = [
  ["-t nat -F KUBE-POSTROUTING"],
  ["-t nat -F KUBE-MARK-MASQ"],
  ["-t nat -F KUBE-NODEPORTS"],
  ["-t nat -F KUBE-SERVICES"],
  ["-t nat -F KUBE-POSTROUTING", "-t nat -F KUBE-MARK-MASQ", "-t nat -F KUBE-NODEPORTS", "-t filter -D KUBE-FORWARD 1"],
  ["-t nat -D KUBE-POSTROUTING 1"],
  ["-t nat -I KUBE-POSTROUTING 1 -j RETURN"],
  ["-t nat -R KUBE-MARK-MASQ 1 -j MARK --set-xmark 0x8000/0x8000"],
  ["-t nat -D KUBE-SERVICES 1"],
  ["-t nat -I KUBE-SERVICES 1 -j RETURN"],
  ["-t nat -D KUBE-SERVICES 2", "-t nat -A KUBE-SERVICES -j RETURN"],
  ["-t nat -D POSTROUTING 1"],
  ["-t nat -D OUTPUT 1"],
  ["-t filter -F KUBE-FORWARD"],
  [`-t filter -R KUBE-FORWARD 2 ${MARK} -j DROP`],
  ["-t filter -F KUBE-SERVICES"],
  ["-t filter -I KUBE-SERVICES 1 -j ACCEPT"],
  ["-t filter -D FORWARD 2"],
  ["-t filter -F KUBE-FIREWALL"],
  ["-t filter -D INPUT 1", "-t filter -D OUTPUT 1", "-t filter -F KUBE-FIREWALL", "-t filter -X KUBE-FIREWALL"],
  ["-t filter -F FORWARD", "-t filter -F KUBE-FORWARD", "-t filter -F KUBE-SERVICES"],
];

const nodePorts = clusterIPGroup("ports", "10.96.0.12", endpoints(1, { from: 20 }));
const PROXY = { verdict: "proxy", set: "cluster", masquerade: true } as const;
const withNodePort = {
  ...nodePorts,
  frontends: [
    ...nodePorts.frontends,
    {
      kind: "node-port",
      reach: "external",
      at: "node-port",
      port: 30_080,
      policy: "Cluster",
      treatments: { pod: PROXY, node: PROXY, outside: PROXY },
    } as const,
  ],
};
const plan = planOf([
  clusterIPGroup("web", "10.96.0.10", endpoints(2)),
  clusterIPGroup("unserved", "10.96.0.11", []),
  withNodePort,
]);

describe.each(["nft", "legacy"] as const)("%s", (variant) => {
  const saved = async (kernel: TestKernel) => {
    const { stdout } = await kernel.runner.run([`iptables-${variant}-save`]);
    return stdout.replaceAll(/^# .* on .*\n/gm, "").replaceAll(/\[\d+:\d+\]/g, "");
  };

  kernelTest(
    "whatever somebody does to our rules in chains of fixed names, the next check finds it, and it is repaired",
    async (kernel) => {
      const port = await kernel.open("IPv4", variant);
      const backend = createIptablesBackend(port);
      await backend.sync(plan);
      const before = await saved(kernel);
      expect(before).toContain("-A KUBE-NODEPORTS -p tcp");
      for (const edit of EDITS) {
        for (const words of edit) await kernel.runner.run([`iptables-${variant}`, "-w", "5", ...words.split(" ")]);
        const edited = await saved(kernel);
        expect(edited, edit.join("; ")).not.toEqual(before);
        const difference = await backend.difference(plan);
        expect(difference, edit.join("; ")).toBeDefined();
        if (difference?.repaired === false) await backend.sync(plan);
        const sorted = (text: string) => text.split("\n").sort();
        expect(sorted(await saved(kernel)), edit.join("; ")).toEqual(sorted(before));
        expect(await backend.difference(plan), edit.join("; ")).toBeUndefined();
      }
    },
  );
});
