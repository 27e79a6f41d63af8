import { clientA, nginxCalico, nodeA, outside, ovnClient } from "@fairlead/testkit";
import { countEnds, every, senders, shares, tally } from "../counted.ts";
import { nginxCalicoIP, nobodyIP, stickyIP, web, webPods } from "../services.ts";
import type { Check, Finding, Stage } from "../stage.ts";

export const foundingCase: Check = async (stage) => {
  const replies = await stage.ask({ from: clientA, to: nginxCalicoIP, port: 80, count: 5 });
  const ok = every(replies, nginxCalico.name);
  return [{ name: "nginx-calico", request: `client-a → ${nginxCalicoIP}:80`, seen: tally(replies), ok }];
};

/** Bounds that a fair spread leaves once in many millions of runs. */
const FAIR = { requests: 300, least: 0.19, most: 0.48 } as const;

export const spread: Check = async (stage) => {
  const replies = await stage.ask({ from: clientA, to: web.clusterIP, port: 80, count: FAIR.requests });
  const counts = [...countEnds(replies)];
  const fair = counts.every(([, count]) => count >= FAIR.least * FAIR.requests && count <= FAIR.most * FAIR.requests);
  const ok =
    fair && counts.length === webPods.length && webPods.every(({ name }) => replies.some(({ end }) => end === name));
  return [
    { name: "spread", request: `client-a → ${web.clusterIP}:80, ${FAIR.requests} times`, seen: shares(replies), ok },
  ];
};

export const affinity: Check = async (stage) =>
  Promise.all(
    [clientA, outside].map(async (from) => {
      const replies = await stage.ask({ from, to: stickyIP, port: 80, count: 1 });
      const more = await stage.ask({ from, to: stickyIP, port: 80, count: 19 });
      const all = [...replies, ...more];
      const ok = countEnds(all).size === 1 && webPods.some(({ name }) => every(all, name));
      return { name: "affinity", request: `${from.name} → ${stickyIP}:80`, seen: tally(all), ok };
    }),
  );

export const nodePort: Check = async (stage) =>
  Promise.all(
    stage.nodePortsAt.map((to) =>
      atNodePort(stage, to.startsWith("127.") ? { from: nodeA, to, source: to } : { from: outside, to }),
    ),
  );

async function atNodePort(stage: Stage, ask: { from: typeof outside; to: string; source?: string }): Promise<Finding> {
  const replies = await stage.ask({ ...ask, port: web.nodePort, count: 30 });
  const ok = replies.every(({ end }) => webPods.some(({ name }) => name === end));
  return { name: "node port", request: `${ask.from.name} → ${ask.to}:${web.nodePort}`, seen: tally(replies), ok };
}

/** Who sees whom: pods of the own network keep their address, everybody else comes as the node. */
export const masquerading: Check = async (stage) =>
  Promise.all(
    [clientA, ovnClient, outside, nodeA].map(async (from) => {
      const own = from.addresses.IPv4;
      const expected = from === clientA ? own : nodeA.addresses.IPv4;
      const replies = await stage.ask({ from, to: nginxCalicoIP, port: 80, count: 5 });
      const seen = senders(replies).join(", ");
      return {
        name: "masquerading",
        request: `${from.name} (${own}) → ${nginxCalicoIP}:80`,
        seen: `the pod sees ${seen === own && from !== nodeA ? `${seen}, its own address` : seen}`,
        ok: every(replies, nginxCalico.name) && seen === expected,
      };
    }),
  );

export const nobodyThere: Check = async (stage) => {
  const replies = await stage.ask({ from: clientA, to: nobodyIP, port: 80, count: 5 });
  const ok = every(replies, "refused");
  return [{ name: "no endpoints", request: `client-a → ${nobodyIP}:80`, seen: `${tally(replies)} at once`, ok }];
};
