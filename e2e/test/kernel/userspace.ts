import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { PATIENCE_MS } from "@fairlead/base/testing";
import { requireAgent } from "@fairlead/lab/agent";
import { fetchBytes, serveBytes, startTraffic, whoAnswers } from "@fairlead/lab/plain/requests";
import { labPorts, objects, openScene, rulesOf, type Scene, web } from "@fairlead/lab/plain/scene";
import { FROM_SOURCES, type Script, startScript } from "@fairlead/lab/support/script";
import { waitUntil } from "@fairlead/lab/support/wait-until";
import {
  clientA,
  clusterObjects,
  conformanceTable,
  NODE_A,
  outside,
  userspaceExpected,
  webA1,
  workload,
} from "@fairlead/testkit";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { groupCases } from "../../src/cases/conformance/groups.ts";
import { strays } from "../../src/cases/conformance/probe-case.ts";
import { portsOf } from "../../src/cases/conformance/programmed.ts";
import { labFor } from "./lab-for.ts";

const RELAY_HOST = fileURLToPath(new URL("../../src/cases/conformance/relay-host-main.ts", import.meta.url));
const USERSPACE = { flags: ["--proxy-mode=userspace", "--proxy-port-range=20000-29999"] };

describe("the conformance table in userspace mode, with real packets", () => {
  const lab = labFor(portsOf(conformanceTable));
  let relays: Script;

  beforeAll(async () => {
    relays = await startScript(lab.namespace("node-a"), RELAY_HOST, [], FROM_SOURCES);
  });

  afterAll(async () => {
    await relays.ask("cleanup");
    await relays.stop();
    expect((await rulesOf(lab)).filter((line) => line.includes("KUBE-"))).toEqual([]);
  });

  for (const [index, group] of groupCases(conformanceTable).entries()) {
    describe(`options ${index + 1}`, () => {
      beforeAll(async () => {
        await relays.ask(String(index));
      });

      for (const row of group.rows) {
        const expected = userspaceExpected(row);
        if ("skip" in expected || row.unreal !== undefined) continue;
        // A relay has accepted what it refuses by weight, and resets it; backend-userspace has these rows.
        if (expected.verdict === "endpoints" && expected.refused !== undefined) continue;
        test.concurrent(row.name, async ({ expect }) => {
          expect(await strays(lab, row, expected)).toEqual([]);
        });
      }
    });
  }
});

describe("the agent in userspace mode on the real kernel", () => {
  const lab = labFor(labPorts, requireAgent);
  let scene: Scene;

  afterEach(() => scene.close());

  test("a restart closes the sockets, clients are refused meanwhile, and the rules lead to the new ones", async () => {
    scene = await openScene(lab, objects, USERSPACE);
    expect((await scene.agent().stop()).exitCode).toBe(0);
    expect(await whoAnswers(lab, clientA, web.clusterIP.IPv4)).toBe("refused");
    await scene.restart();
    const traffic = startTraffic(lab);
    for (const family of ["IPv4", "IPv6"] as const) {
      expect(await whoAnswers(lab, clientA, web.clusterIP[family])).toMatch(/^web-/);
      expect(await whoAnswers(lab, outside, NODE_A.addresses[family], web.nodePort)).toMatch(/^web-/);
    }
    expect((await traffic.stop()).failures).toEqual([]);
  });

  test("from iptables mode and back: each clears what the other left, and --cleanup leaves nothing", async () => {
    scene = await openScene(lab, objects);
    await scene.agent().stop();
    await scene.restart(USERSPACE);
    await untilReplaced("KUBE-SVC-", "KUBE-PORTALS-");
    expect(await whoAnswers(lab, clientA, web.clusterIP.IPv4)).toMatch(/^web-/);
    await scene.agent().stop();
    await scene.restart({});
    await untilReplaced("KUBE-PORTALS-", "KUBE-SVC-");
    expect(await whoAnswers(lab, clientA, web.clusterIP.IPv4)).toMatch(/^web-/);
    await scene.agent().stop();
    await scene.restart(USERSPACE);
    await scene.agent().stop();
    expect((await scene.start({ flags: ["--cleanup"] }).ended).exitCode).toBe(0);
    const left = (await rulesOf(lab)).filter((line) => line.includes("KUBE-") && !line.includes("KUBE-FIREWALL"));
    expect(left).toEqual([]);
  });

  async function untilReplaced(gone: string, there: string): Promise<void> {
    await waitUntil(`no ${gone}`, PATIENCE_MS, async () => {
      const rules = (await rulesOf(lab)).join("\n");
      return !rules.includes(gone) && rules.includes(there) ? true : undefined;
    });
  }

  test("a long transfer: every byte arrives, and the agent's memory does not grow with it", async () => {
    const megabytes = Number(process.env["FAIRLEAD_TRANSFER_MB"] ?? "128");
    const bytes = megabytes << 20;
    await using _server = await serveBytes(lab, webA1, BYTES_PORT);
    scene = await openScene(lab, [...clusterObjects, ...bulk.objects]);
    const iptables = await fetchBytes(lab, clientA, bulk.clusterIP.IPv4, 80, bytes);
    await scene.agent().stop();
    const agent = await scene.restart(USERSPACE);
    await fetchBytes(lab, clientA, bulk.clusterIP.IPv4, 80, 16 << 20);
    const before = await peakMemory(agent.pid);
    const userspace = await fetchBytes(lab, clientA, bulk.clusterIP.IPv4, 80, bytes);
    const grown = (await peakMemory(agent.pid)) - before;
    const speed = ({ ms }: { ms: number }) => `${Math.round(megabytes / (ms / 1000))} MiB/s`;
    const relay = `${speed(userspace)} in userspace mode, ${speed(iptables)} in iptables mode`;
    console.log(`${megabytes} MiB over one connection: ${relay}; the agent's peak memory grew by ${grown >> 10} MiB`);
    expect(userspace).toMatchObject({ received: bytes, intact: true });
    expect(grown).toBeLessThan(64 << 10);
  });
});

const BYTES_PORT = 9_999;
const bulk = workload(18, { endpoints: [webA1], targetPort: BYTES_PORT });

/** In KiB. */
async function peakMemory(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, "utf8");
  return Number(/VmHWM:\s+(\d+)/.exec(status)?.[1]);
}
