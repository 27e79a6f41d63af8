import { clientA, NODE_A, nginxCalico, outside, ovnClient } from "@fairlead/testkit";
import { countEnds, every, senders, shares, tally } from "../counted.ts";
import { NGINX_CALICO_IP, NOBODY_IP, STICKY_IP, WEB, webPods } from "../services.ts";
import type { Check, DemoEnvironment, Finding } from "../stage.ts";

export const foundingCase: Check = async (stage) => {
  const replies = await stage.ask({ from: clientA, to: NGINX_CALICO_IP, port: 80, count: 5 });
  const ok = every(replies, nginxCalico.name);
  return [{ name: "nginx-calico", request: `client-a → ${NGINX_CALICO_IP}:80`, seen: tally(replies), ok }];
};

/** Bounds that a fair spread leaves once in many millions of runs. */
const FAIR = { requests: 300, least: 0.19, most: 0.48 } as const;

export const spread: Check = async (stage) => {
  const replies = await stage.ask({ from: clientA, to: WEB.clusterIP, port: 80, count: FAIR.requests });
  const counts = [...countEnds(replies)];
  const fair = counts.every(([, count]) => count >= FAIR.least * FAIR.requests && count <= FAIR.most * FAIR.requests);
  const ok =
    fair && counts.length === webPods.length && webPods.every(({ name }) => replies.some(({ end }) => end === name));
  return [
    { name: "spread", request: `client-a → ${WEB.clusterIP}:80, ${FAIR.requests} times`, seen: shares(replies), ok },
  ];
};

export const affinity: Check = async (stage) =>
  Promise.all(
    [clientA, outside].map(async (from) => {
      const replies = await stage.ask({ from, to: STICKY_IP, port: 80, count: 1 });
      const more = await stage.ask({ from, to: STICKY_IP, port: 80, count: 19 });
      const all = [...replies, ...more];
      const ok = countEnds(all).size === 1 && webPods.some(({ name }) => every(all, name));
      return { name: "affinity", request: `${from.name} → ${STICKY_IP}:80`, seen: tally(all), ok };
    }),
  );

export const nodePort: Check = async (stage) =>
  Promise.all(
    stage.nodePortsAt.map((to) =>
      atNodePort(stage, to.startsWith("127.") ? { from: NODE_A, to, source: to } : { from: outside, to }),
    ),
  );

async function atNodePort(
  stage: DemoEnvironment,
  ask: { from: typeof outside; to: string; source?: string },
): Promise<Finding> {
  const replies = await stage.ask({ ...ask, port: WEB.nodePort, count: 30 });
  const ok = replies.every(({ end }) => webPods.some(({ name }) => name === end));
  return { name: "node port", request: `${ask.from.name} → ${ask.to}:${WEB.nodePort}`, seen: tally(replies), ok };
}

/** Who sees whom: pods of the own network keep their address, everybody else comes as the node. */
export const masquerading: Check = async (stage) =>
  Promise.all(
    [clientA, ovnClient, outside, NODE_A].map(async (from) => {
      const own = from.addresses.IPv4;
      const expected = from === clientA ? own : NODE_A.addresses.IPv4;
      const replies = await stage.ask({ from, to: NGINX_CALICO_IP, port: 80, count: 5 });
      const seen = senders(replies).join(", ");
      return {
        name: "masquerading",
        request: `${from.name} (${own}) → ${NGINX_CALICO_IP}:80`,
        seen: `the pod sees ${seen === own && from !== NODE_A ? `${seen}, its own address` : seen}`,
        ok: every(replies, nginxCalico.name) && seen === expected,
      };
    }),
  );

export const nobodyThere: Check = async (stage) => {
  const replies = await stage.ask({ from: clientA, to: NOBODY_IP, port: 80, count: 5 });
  const ok = every(replies, "refused");
  return [{ name: "no endpoints", request: `client-a → ${NOBODY_IP}:80`, seen: `${tally(replies)} at once`, ok }];
};
