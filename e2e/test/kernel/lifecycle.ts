import { PATIENCE_MS } from "@fairlead/base/testing";
import { requireAgent } from "@fairlead/lab/agent";
import { deleteChainsArgv, flushArgv } from "@fairlead/lab/faults";
import { startTraffic, whoAnswers } from "@fairlead/lab/plain/requests";
import { labPorts, late, objects, openScene, rulesOf, type Scene, web } from "@fairlead/lab/plain/scene";
import { waitUntil } from "@fairlead/lab/support/wait-until";
import { clientA, NETWORKS } from "@fairlead/testkit";
import { afterEach, describe, expect, test } from "vitest";
import { labFor } from "./lab-for.ts";

describe("the agent from its start to its clean-up", () => {
  const lab = labFor(labPorts, requireAgent);
  let scene: Scene;

  afterEach(() => scene.close());

  test("kill -9 and a restart under traffic: no connection fails", async () => {
    scene = await openScene(lab, objects);
    const traffic = startTraffic(lab);
    for (let round = 0; round < 2; round++) {
      expect((await scene.agent().kill()).signal).toBe("SIGKILL");
      await scene.restart();
    }
    expect((await traffic.stop(100)).failures).toEqual([]);
    await scene.folder.write([...objects, ...late.objects]);
    await waitUntil("a change after the restart", PATIENCE_MS, async () =>
      (await whoAnswers(lab, clientA, late.clusterIP.IPv4)) === "web-a1" ? true : undefined,
    );
  });

  test("--cleanup removes what is ours and leaves what is not", async () => {
    const node = lab.runner("node-a");
    const foreign = [
      "*nat",
      ":FLANNEL-POSTRTG - [0:0]",
      ":KUBE-KUBELET-CANARY - [0:0]",
      `-A POSTROUTING -m comment --comment "flanneld masq" -j FLANNEL-POSTRTG`,
      `-A FLANNEL-POSTRTG -s ${NETWORKS.calico.IPv4} -j RETURN`,
      "COMMIT",
      "*filter",
      ":KUBE-FIREWALL - [0:0]",
      ":KUBE-ROUTER-INPUT - [0:0]",
      "-A INPUT -j KUBE-FIREWALL",
      "-A INPUT -j KUBE-ROUTER-INPUT",
      "COMMIT",
      "",
    ].join("\n");
    await node.run(["iptables-restore", "--noflush"], { input: foreign });
    const before = await rulesOf(lab);
    scene = await openScene(lab, objects);
    await scene.agent().stop();
    const { exitCode, log } = await scene.start({ flags: ["--cleanup"] }).ended;
    expect(exitCode, log).toBe(0);
    const after = await rulesOf(lab);
    expect(before.filter((line) => !after.includes(line))).toEqual([]);
    // KUBE-FIREWALL is kubelet's as well as kube-proxy's: neither's cleanup takes it away from the other.
    expect(after.filter((line) => !before.includes(line) && !line.includes("KUBE-FIREWALL"))).toEqual([]);
    expect(await whoAnswers(lab, clientA, web.clusterIP.IPv4)).toBe("sink");
    for (const table of ["nat", "filter"]) {
      await node.run(flushArgv("IPv4", table));
      await node.run(deleteChainsArgv("IPv4", table));
    }
  });
});
