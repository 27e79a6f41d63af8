/** All specs of attacks; those on an agent's ports and its connections are here. */

import { setTimeout as sleep } from "node:timers/promises";
import type { IPFamily } from "@fairlead/core";
import { expectAnswers, until } from "../expect.ts";
import { PORTS } from "../faults/stage.ts";
import { able, onlyIn, type Spec } from "../spec.ts";
import { manyEndpoints } from "./manifests.ts";
import { otherWriters } from "./other-writers.ts";
import { type Attacked, startProgram, underAttack, untilLogged } from "./under-attack.ts";

const CONNECTIONS = 2_000;

const LOOPBACK: Readonly<Record<IPFamily, string>> = { IPv4: "127.0.0.1", IPv6: "::1" };

/** Clients of one relay may be many and idle: those of another find descriptors. */
const relayed: Spec = underAttack({
  name: `attack: ${CONNECTIONS.toLocaleString("en")} connections held at one node port's relay, where 1,024 files may be open`,
  unfit: onlyIn(["nftables"], "other modes relay no node port on a loopback address"),
  start: () => ({
    openFiles: 1_024,
    flags: ["--feature-gates=KubeProxyNFTablesLocalhostNodePorts=true", "--nodeport-addresses=primary,localhost"],
  }),
  act: async (attacked) => {
    const { scene, node } = attacked;
    const pods = { selector: { app: "web" }, ports: PORTS, type: "NodePort" } as const;
    const [held, other] = [await scene.service("held", pods), await scene.service("other", pods)];
    const atOther = { to: LOOPBACK[scene.family], port: other.nodePort };
    await expectAnswers(node, { ...atOther, port: held.nodePort }, attacked);
    const script = await startProgram(attacked, "half-open", String(CONNECTIONS), String(held.nodePort));
    const refused = await untilRefused(attacked);
    await expectAnswers(node, atOther, attacked);
    const meanwhile = await attacked.change("meanwhile");
    await script.stop();
    return { refused, meanwhile };
  },
});

/** Resolves when relays have refused clients because of a limit. */
async function untilRefused({ node }: Attacked): Promise<string> {
  let refused = "";
  await until("refused clients of a relay", async () => {
    const metrics = await node.agent.get("/metrics");
    const limits = /^fairlead_relay_refused_total\{reason="\w+-limit"\} ([1-9]\d*)$/m;
    refused = limits.exec(metrics)?.[1] ?? "";
    return refused === "" ? "none" : undefined;
  });
  return refused;
}

const HELD_MS = 3_000;

const held: Spec = underAttack({
  name: `attack: ${CONNECTIONS.toLocaleString("en")} connections held at the health and the metrics port, where 1,024 files may be open`,
  start: () => ({ openFiles: 1_024 }),
  act: async (attacked) => {
    const script = await startProgram(attacked, "half-open", String(CONNECTIONS), "10256", "10249");
    await sleep(HELD_MS);
    const meanwhile = await attacked.change("meanwhile");
    const open = await script.ask("open");
    await script.stop();
    return { open, meanwhile };
  },
});

/** The agent asks after 70 s without a byte, and waits 15 s for the answer. */
const NOTICED_MS = 100_000;

const silent: Spec = underAttack({
  name: "attack: the API server falls silent, and its connections stay open",
  act: async (attacked) => {
    const { scene, node } = attacked;
    const gate = await able(scene.cluster.apiServer.turnSilent)(node);
    scene.later(gate.stop);
    const before = await attacked.change("before");
    const log = await node.agent.log();
    await gate.ask("silence");
    const noticed = await untilLogged(node, log, /^E.*API server cannot be reached/, NOTICED_MS);
    // An agent that keeps its open connections gets nothing all the same.
    await gate.ask("answer");
    const meanwhile = await attacked.change("meanwhile");
    await gate.stop();
    return { before, noticed, meanwhile };
  },
});

/** What others do to an agent on purpose, or could. */
export const attacks: readonly Spec[] = [held, relayed, silent, manyEndpoints, otherWriters];
