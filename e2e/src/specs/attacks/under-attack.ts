/** The frame of an attack: an agent that serves, and what is watched of it. */

import { setTimeout as sleep } from "node:timers/promises";
import type { AgentStart, ClusterNode } from "@fairlead/lab/provider/cluster";
import { forgetPeak, isRunning, peakMiB, processId, workSeconds } from "@fairlead/lab/support/processes";
import { expectAnswers, until } from "../expect.ts";
import { openStage, PORTS, startTraffic, withoutFailure } from "../faults/stage.ts";
import { able, type Figures, needs, type Scene, type Spec } from "../spec.ts";
import type { LivezReport } from "./programs/livez-main.ts";

/** What an agent has to keep to while it is attacked. */
interface Limits {
  /** Resident memory at its highest. */
  readonly mostMiB: number;
  /** Processor time of the agent and its tools. */
  readonly mostSeconds: number;
  /** /livez may say that it is not well, as long as it says it at once. */
  readonly mayBeUnwell: boolean;
}

/** What an attacker does to the agent of the first node, and how that agent runs. */
export interface Attack extends Partial<Limits>, Pick<Spec, "unfit"> {
  readonly name: string;
  /** How the agent is started before the attack; default as ever. */
  start?(attacked: Attacked): AgentStart | Promise<AgentStart>;
  /** Brings what the API server has, endpoints with these addresses included, to an agent that does not ask it. */
  carry?(attacked: Attacked, addresses: readonly string[]): Promise<void>;
  /** The attack from its beginning to its end, with changes on the way. @returns figures of its own */
  act(attacked: Attacked): Promise<Figures>;
}

/** The agent's node while it is attacked; services are served there all the while. */
export interface Attacked extends Awaited<ReturnType<typeof openStage>> {
  readonly scene: Scene;
  readonly node: ClusterNode;
  /**
   * A service and its endpoint come now, and are served here.
   *
   * @param withinMs default: two minutes
   * @returns how long that took, in words
   * @throws Error when they are not
   */
  change(name: string, withinMs?: number): Promise<string>;
}

/** Rules are looked at as seldom as with kube-proxy's default: what is slow is not taken for stuck. */
const FLAGS = ["--iptables-sync-period=30s"];

const LONGEST_MS = 900_000;

/**
 * An attack during which the same process goes on answering /livez, in bounded memory, and services are served without
 * a failed request and go on changing, while it lasts and after it.
 */
export function underAttack(attack: Attack): Spec {
  const { name, unfit } = attack;
  return {
    suite: "attacks",
    name,
    eachFamily: false,
    unfit: (shape, family) => needs("attack")(shape) ?? unfit?.(shape, family),
    run: async (scene) => {
      const attacked = await openAttacked(scene, attack);
      const { node, caller, atService, by, ways } = attacked;
      // Comes after everything that the attack itself takes back. An agent that does not answer is not asked to end.
      scene.later(async () => {
        await node.agent.kill();
        await node.agent.restart();
      });
      const how = await attack.start?.(attacked);
      await attack.carry?.(attacked, []);
      await node.agent.restart({ ...how, flags: [...FLAGS, ...(how?.flags ?? [])] });
      const watch = await watchAgent(node, scene.later);
      const traffic = startTraffic(ways, scene.later, LONGEST_MS);
      const act = async () => {
        const more = await attack.act(attacked);
        const after = await attacked.change("after");
        await expectAnswers(caller, atService, { by });
        return { ...withoutFailure(await traffic.stop()), ...(await watch.finish(attack)), ...more, after };
      };
      return Promise.race([act(), watch.ended]);
    },
  };
}

/** Runs a script of the attack on the attacked node, until the spec ends. @param program a file of `programs` */
export async function startProgram({ scene, node }: Attacked, program: string, ...args: readonly string[]) {
  const script = await able(node.startScript)(programFile(program), args);
  scene.later(script.stop);
  return script;
}

/** @returns the path of a file of `programs` */
function programFile(program: string): string {
  return new URL(`programs/${program}-main.ts`, import.meta.url).pathname;
}

/**
 * Waits for a line in the log of a node's agent.
 *
 * @param before what the log was; lines of it do not count
 * @returns how long that took, in words
 * @throws Error when there is none in time
 */
export async function untilLogged(
  { agent }: ClusterNode,
  before: string,
  wanted: RegExp,
  withinMs: number,
): Promise<string> {
  const began = performance.now();
  await until(
    `a line in the agent's log like ${wanted.source}`,
    async () =>
      (await agent.log())
        .slice(before.length)
        .split("\n")
        .some((line) => wanted.test(line))
        ? undefined
        : "none",
    withinMs,
  );
  return `${((performance.now() - began) / 1000).toFixed(1)} s`;
}

const CHANGE_MS = 120_000;

async function openAttacked(scene: Scene, attack: Attack): Promise<Attacked> {
  const stage = await openStage(scene);
  const [node] = scene.nodes;
  const attacked: Attacked = {
    ...stage,
    scene,
    node,
    change: async (name, withinMs = CHANGE_MS) => {
      const pod = await scene.pod({ node, app: name });
      const service = await scene.service(name, { selector: { app: name }, ports: PORTS });
      const began = performance.now();
      await attack.carry?.(attacked, [pod.addresses[scene.family] ?? ""]);
      const target = { to: service.clusterIP, port: 80, withinMs };
      await expectAnswers(node, target, { by: [pod] });
      return `${((performance.now() - began) / 1000).toFixed(1)} s`;
    },
  };
  return attacked;
}

interface AgentWatch {
  /**
   * Rejects when the process ends, or has not answered for so long that the rest of the attack would show nothing more.
   */
  readonly ended: Promise<never>;
  /** @throws Error that says what it has not kept to */
  finish(limits: Partial<Limits>): Promise<Figures>;
}

const HEALTH_PORT = "10256";
/** Of the agent's own processor time, however busy the machine is. */
const MOST_WORK_MS = 1_000;
const MOST_MIB = 256;
const MOST_SECONDS = 60;
const LOOK_MS = 250;
const SILENT_MS = 20_000;
const LAST_LINES = 8;
const PROBER = new URL("programs/livez-main.ts", import.meta.url).pathname;

/** Watches the process of a node's agent, its memory and /livez, until the spec ends. */
async function watchAgent({ agent, startScript }: ClusterNode, later: Scene["later"]): Promise<AgentWatch> {
  const pid = able(agent.pid)();
  const id = await processId(pid);
  const before = await workSeconds(pid);
  await forgetPeak(pid);
  const prober = await able(startScript)(PROBER, [HEALTH_PORT, String(pid)]);
  let over = false;
  later(async () => {
    over = true;
    await prober.stop();
  });
  const look = async (): Promise<LivezReport> => JSON.parse(await prober.ask("seen"));
  const lastWords = async () => (await agent.log()).trimEnd().split("\n").slice(-LAST_LINES).join("\n");
  const watch = async (): Promise<never> => {
    while (!over && (await isRunning(id))) {
      const { longestOwn } = await look();
      if (longestOwn > SILENT_MS) throw new Error(`/livez did not answer for ${SILENT_MS / 1_000} s`);
      await sleep(LOOK_MS);
    }
    if (over) return new Promise(() => {});
    throw new Error(`the agent has ended; its last words:\n${await lastWords()}`);
  };
  const ended = watch();
  // Heeded where the attack is waited for.
  ended.catch(() => {});
  const finish = async ({ mostMiB = MOST_MIB, mostSeconds = MOST_SECONDS, mayBeUnwell = false }: Partial<Limits>) => {
    const seen = await look();
    const [peak, work] = [await peakMiB(pid), (await workSeconds(pid)) - before];
    over = true;
    const reported = { ...figures(seen, peak), work: `${work.toFixed(1)} s` };
    const complaints = [
      ...(peak > mostMiB ? [`more than ${mostMiB} MiB`] : []),
      ...(work > mostSeconds ? [`more than ${mostSeconds} s of processor time`] : []),
      ...(seen.mostWork > MOST_WORK_MS ? [`over ${MOST_WORK_MS} ms of work before an answer of /livez`] : []),
      ...(seen.refused.length > 0 && !mayBeUnwell ? [`/livez said ${[...new Set(seen.refused)].join(", ")}`] : []),
    ];
    if (complaints.length === 0) return reported;
    const counted = Object.entries(reported).map(([what, value]) => `${what} ${value}`);
    throw new Error(`${complaints.join("; ")} (${counted.join(", ")})`);
  };
  return { ended, finish };
}

function figures({ asked, refused, slowest, mostWork }: LivezReport, peak: number): Figures {
  return {
    "peak memory": `${Math.round(peak)} MiB`,
    "slowest livez": `${Math.round(slowest)} ms`,
    "work before it": `${Math.round(mostWork)} ms`,
    ...(refused.length > 0 && { unwell: `${refused.length} of ${asked}` }),
  };
}
