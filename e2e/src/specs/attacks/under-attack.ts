import type { AgentStart, ClusterNode } from "@fairlead/lab/provider/cluster";
import { expectAnswers } from "../expect.ts";
import { openStage, PORTS } from "../faults/stage.ts";
import { startTraffic, withoutFailure } from "../faults/traffic.ts";
import { able, needs } from "../needs.ts";
import type { Scene } from "../scene.ts";
import type { Figures, Spec } from "../spec.ts";
import { type Limits, watchAgent } from "./watch-agent.ts";

/** What somebody does to the agent of the first node, and how that agent runs. */
export interface Attack extends Partial<Limits>, Pick<Spec, "unfit"> {
  readonly name: string;
  readonly eachFamily?: boolean;
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
const CHANGE_MS = 120_000;
const LONGEST_MS = 900_000;

/**
 * An attack during which the same process goes on answering /livez, in bounded memory, and services are served without
 * a failed request and go on changing, while it lasts and after it.
 */
export function underAttack(attack: Attack): Spec {
  const { name, unfit, eachFamily = false } = attack;
  return {
    suite: "attacks",
    alone: true,
    name,
    eachFamily,
    unfit: (shape, family) => needs("attack")(shape) ?? unfit?.(shape, family),
    run: async (scene) => {
      const attacked = await openAttacked(scene, attack);
      const { node, caller, atService, by, ways } = attacked;
      // Comes after everything that the attack itself takes back. Who does not answer is not asked to end.
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

/** Runs a script of the attack on the attacked node, until the spec ends. @param program a file of `programs` */
export async function startProgram({ scene, node }: Attacked, program: string, ...args: readonly string[]) {
  const script = await able(node.startScript)(programFile(program), args);
  scene.later(script.stop);
  return script;
}

/** @returns the path of a file of `programs` */
export function programFile(program: string): string {
  return new URL(`programs/${program}-main.ts`, import.meta.url).pathname;
}
