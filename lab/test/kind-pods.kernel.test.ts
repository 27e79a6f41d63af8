import { createRunner } from "@fairlead/kernel";
import { describe, expect, test } from "vitest";
import type { CniNode, PodToAttach } from "../src/cni/flavor.ts";
import { networkOf } from "../src/provider/kind/machine.ts";
import { AttachedPods } from "../src/provider/kind/networks/delegated.ts";

const { namespace } = networkOf(process.pid);
const node = (name: string, index: number): CniNode => {
  return { name, index, addresses: {}, namespace, runner: createRunner() };
};

// Another process's network namespace is root's to enter.
describe.runIf(process.getuid?.() === 0)("pods that a kubelet starts", () => {
  const nodes = [node("worker", 1)];
  const request = (container: string) => ({ node: "worker", container, netns: `/proc/${process.pid}/ns/net` });
  const network = {
    attach: async ({ index }: PodToAttach) => ({ IPv4: `10.0.0.${index}` }),
    detach: async () => {},
  };

  test("at once: each has a number of its own, and one that went is used again", async () => {
    const pods = new AttachedPods(network, nodes, "c");
    const added = await Promise.all(["a", "b", "c"].map((name) => pods.add(request(name))));
    expect(added.map(({ IPv4 }) => IPv4).sort()).toEqual(["10.0.0.1", "10.0.0.2", "10.0.0.3"]);
    await pods.remove("b");
    const again = await pods.add(request("d"));
    expect(added).toContainEqual(again);
    await pods.dispose();
  });

  test("of a node of another cluster: refused", async () => {
    const pods = new AttachedPods(network, nodes, "c");
    await expect(pods.add({ ...request("a"), node: "stranger" })).rejects.toThrow("stranger is not a node");
  });
});
