import { PATIENCE_MS } from "@fairlead/base/testing";
import { requireAgent } from "@fairlead/lab/agent";
import { deleteChainsArgv, flushArgv, halfRestore, holdXtablesLock } from "@fairlead/lab/faults";
import { startTraffic, whoAnswers } from "@fairlead/lab/plain/requests";
import { labPorts, late, noEndpoints, objects, openScene, rulesOf, type Scene, web } from "@fairlead/lab/plain/scene";
import { commandsBelow } from "@fairlead/lab/support/processes";
import { waitUntil } from "@fairlead/lab/support/wait-until";
import { clientA } from "@fairlead/testkit";
import { afterEach, describe, expect, test } from "vitest";
import { labFor } from "./lab-for.ts";

describe("the agent and faults of the real kernel", () => {
  const lab = labFor(labPorts, requireAgent);
  let scene: Scene;

  afterEach(() => scene.close());

  const tables = ["nat", "filter"] as const;
  const families = ["IPv4", "IPv6"] as const;

  describe("tables flushed by hand are restored", () => {
    for (const family of families) {
      for (const table of tables) {
        for (const chains of [false, true]) {
          test(`${family} ${table} ${chains ? "-F and -X" : "-F"}`, async () => {
            scene = await openScene(lab, objects);
            const before = await rulesOf(lab);
            const node = lab.runner("node-a");
            const { pid } = scene.agent();
            // Else the rules might be there again before the test looks.
            process.kill(pid, "SIGSTOP");
            await node.run(flushArgv(family, table));
            if (chains) await node.run(deleteChainsArgv(family, table));
            expect(await rulesOf(lab)).not.toEqual(before);
            process.kill(pid, "SIGCONT");
            await waitUntil("the restoration", PATIENCE_MS, async () =>
              (await rulesOf(lab)).join("\n") === before.join("\n") ? true : undefined,
            );
            expect(await whoAnswers(lab, clientA, web.clusterIP[family])).toMatch(/^web-/);
            expect(await whoAnswers(lab, clientA, noEndpoints.clusterIP[family])).toBe("refused");
          });
        }
      }
    }
  });

  test("another program holds the xtables lock: nothing fails, and the change is there afterwards", async () => {
    const node = lab.runner("node-a");
    // kubelet's hint: this host uses the legacy variant, the one that has a lock.
    await node.run(["iptables-legacy", "-t", "mangle", "-N", "KUBE-IPTABLES-HINT"]);
    scene = await openScene(lab, objects);
    const traffic = startTraffic(lab);
    await using lock = await holdXtablesLock(lab.namespace("node-a"));
    await scene.folder.write([...objects, ...late.objects]);
    await waitUntil("a tool that waits for the lock", PATIENCE_MS, async () =>
      (await commandsBelow(scene.agent().pid)).some((command) => command.includes("tables-legacy-restore"))
        ? true
        : undefined,
    );
    expect(await whoAnswers(lab, clientA, late.clusterIP.IPv4)).toBe("sink");
    await lock.release();
    await waitUntil("the change", PATIENCE_MS, async () =>
      (await whoAnswers(lab, clientA, late.clusterIP.IPv4)) === "web-a1" ? true : undefined,
    );
    expect((await traffic.stop(50)).failures).toEqual([]);
    await scene.close();
    await node.run(["iptables-legacy", "-t", "mangle", "-X", "KUBE-IPTABLES-HINT"]);
  });

  test("iptables-restore killed half way: what served goes on, and the change comes with the next try", async () => {
    scene = await openScene(lab, objects);
    await scene.agent().stop();
    const half = await halfRestore(scene.folder.path);
    await scene.restart({ env: { PATH: half.path } });
    const traffic = startTraffic(lab);
    await half.arm();
    await scene.folder.write([...objects, ...late.objects]);
    await waitUntil("the change", PATIENCE_MS, async () =>
      (await whoAnswers(lab, clientA, late.clusterIP.IPv4)) === "web-a1" ? true : undefined,
    );
    expect(await half.armed()).toBe(false);
    expect((await traffic.stop(20)).failures).toEqual([]);
    const converged = await rulesOf(lab);
    await scene.agent().stop();
    await scene.start({ flags: ["--cleanup"] }).ended;
    await scene.restart();
    expect(converged).toEqual(await rulesOf(lab));
  });
});
