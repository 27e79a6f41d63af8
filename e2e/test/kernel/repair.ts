import { requireAgent } from "@fairlead/lab/agent";
import { inflict } from "@fairlead/lab/faults";
import { labPorts, objects, openScene, type Scene } from "@fairlead/lab/plain/scene";
import { fairlead, requireTool } from "@fairlead/lab/tools/page-reader";
import { NETWORKS } from "@fairlead/testkit";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { labFor } from "./lab-for.ts";

describe("fairlead verify --repair alongside the running agent", () => {
  const lab = labFor(labPorts, requireAgent, requireTool);
  let scene: Scene;

  beforeAll(async () => {
    // So long that nothing but the request makes it look at every rule.
    scene = await openScene(lab, objects, { flags: ["--iptables-sync-period=1h"] });
  });

  afterAll(() => scene.close());

  const verify = (...more: readonly string[]) => {
    const where = ["-f", scene.folder.manifests, "--node", "node-a"];
    const own = ["--cluster-cidr", NETWORKS.calico.IPv4, "--cluster-cidr", NETWORKS.calico.IPv6];
    const others = ["--exclude-cluster-cidr", NETWORKS.ovn.IPv4, "--exclude-cluster-cidr", NETWORKS.ovn.IPv6];
    return fairlead(lab, "verify", ...where, ...own, ...others, ...more);
  };

  test("a healthy node: nothing differs", async () => {
    expect(await verify()).toEqual({ code: 0, out: "OK: nothing differs (IPv4, IPv6)\n" });
  });

  // The agent looks at the chains of fixed names twice a second, and a rule that goes from one is back at once.
  test("a service's jump to its endpoint removed: reported, restored, and no longer reported", async () => {
    await inflict(lab.runner("node-a"), { table: "nat", remove: /-A KUBE-SVC-.*nginx-calico.* -j KUBE-SEP-/ });
    const before = await verify();
    expect(before.out).toMatch(/^default\/nginx-calico IPv4: different\n {2}- nat KUBE-SVC-/m);
    expect(before.code).toBe(1);
    expect(await verify("--repair")).toEqual({ code: 0, out: "OK: nothing differs (IPv4, IPv6)\n" });
    expect(await verify()).toEqual({ code: 0, out: "OK: nothing differs (IPv4, IPv6)\n" });
  });
});
