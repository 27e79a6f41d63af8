import { PATIENCE_MS } from "@fairlead/base/testing";
import type { Argv } from "@fairlead/kernel";
import { requireAgent } from "@fairlead/lab/agent";
import { flushArgv } from "@fairlead/lab/faults";
import type { Lab } from "@fairlead/lab/plain/lab";
import { startTraffic, type TrafficFlow, whoAnswersAt } from "@fairlead/lab/plain/requests";
import {
  type FirstProxy,
  labeled,
  labPorts,
  noEndpoints,
  objects,
  openPair,
  type Pair,
  rulesOf,
  web,
} from "@fairlead/lab/plain/scene";
import { waitUntil } from "@fairlead/lab/support/wait-until";
import { clientA, NODE_A, outside, type Workload, webA1, webB1, workload } from "@fairlead/testkit";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { labFor } from "./lab-for.ts";

const families = ["IPv4", "IPv6"] as const;
/** The named one's. */
const edge = workload(14, { endpoints: [webA1, webB1], families, nodePort: true });
const edgeNoEndpoints = workload(15, { endpoints: [], families });
/** It changes hands. */
const moving = workload(16, { endpoints: [webA1], families });

const atClusterIPs = ({ clusterIP, port }: Workload): readonly TrafficFlow[] =>
  families.map((family) => ({ from: clientA, to: clusterIP[family], port }));
const waysTo = (service: Workload): readonly TrafficFlow[] => [
  ...atClusterIPs(service),
  { from: outside, to: NODE_A.addresses.IPv4, port: service.nodePort },
];
const refusals = (service: Workload): readonly TrafficFlow[] => atClusterIPs(service);

const NAMED_TABLES = ["ip fairlead-edge", "ip6 fairlead-edge"] as const;
const FIRST_TABLES = ["ip kube-proxy", "ip6 kube-proxy"] as const;

/** What the first proxy has in the kernel, by its mode: nftables tables, its rules as text, and what breaks them. */
const FIRSTS = {
  iptables: { tables: 0, rules: async (lab) => (await rulesOf(lab)).join("\n"), damage: flushArgv("IPv4", "nat") },
  nftables: {
    tables: FIRST_TABLES.length,
    rules: (lab) => listing(lab, FIRST_TABLES),
    damage: ["nft", "delete table ip kube-proxy"],
  },
} as const satisfies Record<string, { tables: number; rules: (lab: Lab) => Promise<string>; damage: Argv }>;

async function listing(lab: Lab, names: readonly string[]): Promise<string> {
  const listed = names.map((name) => lab.runner("node-a").run(["nft", "list", "table", ...name.split(" ")]));
  return (await Promise.all(listed)).map(({ stdout }) => stdout).join("");
}

interface Side {
  readonly rules: () => Promise<string>;
  readonly service: Workload;
}

/** A named instance alongside the node's first proxy. `FAIRLEAD_KUBE_PROXY` adds the real one. */
export function instances(kubeProxy?: string): void {
  const firsts: readonly (FirstProxy & { mode: keyof typeof FIRSTS })[] = (["iptables", "nftables"] as const).map(
    (mode) => ({
      mode,
      ...(kubeProxy !== undefined && { kubeProxy }),
    }),
  );
  const who = kubeProxy === undefined ? "Fairlead" : "the real kube-proxy";
  describe.each(firsts)(`a second instance in nftables mode alongside ${who} in $mode mode`, (first) => {
    const landing = [...labPorts.landingPorts.tcp, edge.nodePort];
    const lab = labFor({ ...labPorts, landingPorts: { tcp: landing, udp: [] } }, requireAgent);
    let pair: Pair;

    beforeAll(async () => {
      const own = [...edge.objects, ...edgeNoEndpoints.objects];
      pair = await openPair(lab, first, [...objects, ...moving.objects, ...labeled(own)]);
    });

    afterAll(async () => {
      await pair.close();
      expect(await tables()).toEqual([]);
    });

    const tables = async () => {
      const { stdout } = await lab.runner("node-a").run(["nft", "list", "tables"]);
      return stdout.split("\n").filter((line) => /kube-proxy|fairlead-/.test(line));
    };
    const its = FIRSTS[first.mode];
    const firstsRules = () => its.rules(lab);
    const namedRules = () => listing(lab, NAMED_TABLES);
    const expectAnswers = async (ways: readonly TrafficFlow[], answer: RegExp) => {
      for (const way of ways) {
        await waitUntil(`${answer} at ${way.to}`, PATIENCE_MS, async () =>
          answer.test(await whoAnswersAt(lab, way)) ? true : undefined,
        );
      }
    };
    const served = (service: Workload) => expectAnswers(waysTo(service), /^web-/);
    const refused = (service: Workload) => expectAnswers(refusals(service), /^refused$/);

    test("each serves its own services, and refuses for those without endpoints", async () => {
      for (const service of [web, edge]) await served(service);
      for (const service of [noEndpoints, edgeNoEndpoints]) await refused(service);
      expect(await namedRules()).not.toContain(web.clusterIP.IPv4);
      expect(await firstsRules()).not.toContain(edge.clusterIP.IPv4);
    });

    const mends = async (damage: Argv, own: Side, other: Side) => {
      const [before, others] = [await own.rules(), await other.rules()];
      const traffic = startTraffic(lab, waysTo(other.service));
      await lab.runner("node-a").run(damage);
      await waitUntil("the rules as they were", PATIENCE_MS, async () =>
        (await own.rules().catch(() => "")) === before ? true : undefined,
      );
      await served(own.service);
      expect((await traffic.stop(1)).failures).toEqual([]);
      expect(await other.rules()).toBe(others);
    };
    const firstSide: Side = { rules: firstsRules, service: web };
    const namedSide: Side = { rules: namedRules, service: edge };

    test("the named one's table is restored after it was deleted; the first one's rules stay", () =>
      mends(["nft", "delete table ip fairlead-edge; flush table ip6 fairlead-edge"], namedSide, firstSide));

    // kube-proxy takes its time.
    if (kubeProxy === undefined) {
      test("the first one mends what is its own, and the other's table stays", () =>
        mends(its.damage, firstSide, namedSide));
    }

    test("a service is served by the other one once its label has changed, and back", async () => {
      const address = moving.clusterIP.IPv4;
      const has = async (rules: string) => (rules.includes(address) ? "has it" : "has nothing of it");
      const traffic = startTraffic(lab, [...waysTo(web), ...atClusterIPs(edge)]);
      for (const [state, inNamed, inFirst] of [
        [moving.objects, "has nothing of it", "has it"],
        [labeled(moving.objects), "has it", "has nothing of it"],
        [labeled(moving.objects, "another"), "has nothing of it", "has nothing of it"],
        [moving.objects, "has nothing of it", "has it"],
      ] as const) {
        await pair.put(state);
        await waitUntil(`the named one ${inNamed}, the first one ${inFirst}`, PATIENCE_MS, async () => {
          const found = [await has(await namedRules()), await has(await firstsRules())];
          return found.join() === [inNamed, inFirst].join() ? true : undefined;
        });
        if ([inNamed, inFirst].includes("has it")) await expectAnswers(atClusterIPs(moving), /^web-a1$/);
      }
      expect((await traffic.stop(100)).failures).toEqual([]);
    });

    test("each one's --cleanup leaves the other's serving", async () => {
      const others = await firstsRules();
      const traffic = startTraffic(lab, waysTo(web));
      await pair.named.remove();
      expect(await firstsRules()).toBe(others);
      expect((await traffic.stop()).failures).toEqual([]);
      expect(await tables()).toHaveLength(its.tables);
      await pair.named.start();
      await served(edge);
      const own = await namedRules();
      const named = startTraffic(lab, waysTo(edge));
      await pair.first.remove();
      expect((await named.stop()).failures).toEqual([]);
      expect(await namedRules()).toBe(own);
      await refused(edgeNoEndpoints);
      expect(await tables()).toHaveLength(2);
      await expectAnswers(atClusterIPs(web), /^sink$/);
    });
  });
}
