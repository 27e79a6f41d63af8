/** A node with something to be found, and the doctor's advice that is followed on it. */

import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { AdviceName, Diagnosis } from "@fairlead/inspect";
import { agentFile } from "@fairlead/lab/agent";
import { kubeconfig } from "@fairlead/lab/control-plane/control-plane";
import type { ClusterNode, NodeProxy } from "@fairlead/lab/provider/cluster";
import { SERVICE_CIDRS } from "@fairlead/lab/provider/netns/ground";
import { tool } from "@fairlead/lab/tools/page-reader";
import { expectAnswers, until } from "../expect.ts";
import { startTraffic, type TrafficFlow, type TrafficSeen, withoutFailure } from "../faults/stage.ts";
import { ONE_IS_AN_ANSWER, type Operator, openKubeconfig, openOperator } from "../operator.ts";
import type { Scene } from "../spec.ts";

/** One node whose doctor is asked, and what cases need of it. */
export interface Bench {
  readonly scene: Scene;
  readonly node: ClusterNode;
  /** Good on the node. */
  readonly kubeconfig: string;
  readonly operator: Operator;
  /** The node's proxy while no case is under way. */
  readonly proxy: NodeProxy;
  sh(line: string): Promise<string>;
  /** `fairlead doctor` on the node, as root. @param before a program that starts it */
  doctor(args?: readonly string[], before?: readonly string[]): Promise<readonly Diagnosis[]>;
  operatorAs(user: string): Promise<string>;
  otherKubeconfig(fields: { readonly server?: string; readonly as?: string }): Promise<string>;
}

export async function openBench(scene: Scene, proxy: NodeProxy): Promise<Bench> {
  const [, node] = scene.nodes;
  const file = await openKubeconfig(scene);
  const folder = await scene.folder();
  const { url, token } = scene.cluster.apiServer;
  let files = 0;
  const operator = await openOperator(scene);
  return {
    scene,
    node,
    kubeconfig: file,
    operator,
    proxy,
    sh: async (line) => (await node.run(["sh", "-ec", line])).stdout,
    doctor: async (args = [], before = []) => {
      const argv = ["env", "NO_COLOR=1", ...before, process.execPath, tool, "doctor", "-o", "json", ...args];
      return JSON.parse((await node.run(["sh", "-c", ONE_IS_AN_ANSWER, "sh", ...argv])).stdout);
    },
    operatorAs: async (user) => {
      const config = JSON.parse(await readFile(operator.kubeconfig, "utf8"));
      config.users[0].user.as = user;
      const other = join(folder, "kubeconfig-of-operator");
      await writeFile(other, JSON.stringify(config));
      return other;
    },
    otherKubeconfig: async ({ server = url, as }) => {
      const config = JSON.parse(kubeconfig({ server, token }));
      if (as !== undefined) config.users[0].user.as = as;
      const other = join(folder, `kubeconfig-${++files}`);
      await writeFile(other, JSON.stringify(config));
      return other;
    },
  };
}

export function fullyGiven({ kubeconfig: file, scene }: Bench): readonly string[] {
  return ["--kubeconfig", file, ...serviceCIDRs(scene)];
}

export function serviceCIDRs({ cluster }: Scene): readonly string[] {
  return cluster.families.flatMap((family) => ["--service-cidr", SERVICE_CIDRS[family]]);
}

/** The first finding with that advice; undefined: it is not given. */
export function given(all: readonly Diagnosis[], name: AdviceName, check?: string): Diagnosis | undefined {
  return all.find((one) => one.adviceName === name && (check === undefined || one.check === check));
}

/** What a case is followed by: the advice that was printed. */
interface Printed {
  readonly text: string;
  /** In backticks. */
  readonly commands: readonly string[];
}

export function printed({ advice = "" }: Diagnosis): Printed {
  return { text: advice, commands: [...advice.matchAll(/`([^`]+)`/g)].map(([, command = ""]) => command) };
}

/** Runs what an advice prints, as it is; only where programs are is the test ground's to say. */
export async function runPrinted({ sh, operator }: Bench, { commands }: Printed): Promise<void> {
  for (const command of commands) {
    const [program, ...args] = command.split(" ");
    if (program === "fairlead") await operator.ask(...args);
    else await sh(command.replace(/^fairlead-proxy /, `'${process.execPath}' '${agentFile()}' `));
  }
}

export type Ask = () => Promise<readonly Diagnosis[]>;

export type Later = (undo: () => Promise<unknown>) => void;

/** A state in which doctor gives an advice, and what following it to the letter is. */
export interface AdviceCase {
  readonly what: string;
  /** Makes the state. @returns how doctor is asked in it; default: with all that it can be given */
  readonly make: (bench: Bench, later: Later) => Promise<Ask | undefined> | Promise<void>;
  /** Default: what stands in backticks is run. @returns how doctor is asked after it; default as for `make` */
  readonly follow?: (bench: Bench, advice: Printed) => Promise<Ask | undefined> | Promise<void>;
  /** The state itself stops requests, until the advice has been followed. */
  readonly interrupts?: true;
  /** What the advice is about stays, and so does the line: it asks to look at something. */
  readonly stays?: true;
  /** It is the same alongside kube-proxy. */
  readonly anyProxy?: true;
  /** Of the proxy; default: each. */
  readonly modes?: readonly string[];
  /** Which of several checks with that advice. */
  readonly check?: string;
}

export type AdviceCases = Readonly<Partial<Record<AdviceName, AdviceCase | readonly AdviceCase[]>>>;

interface Stage {
  readonly ways: readonly TrafficFlow[];
  readonly by: readonly { readonly name: string }[];
}

/**
 * No request may fail from before the state is made until its advice has been followed, and a while longer; where the
 * state itself stops requests, from then on. The finding must be gone.
 *
 * @returns what became of the requests
 */
export async function followAdvice(
  bench: Bench,
  advice: AdviceName,
  one: AdviceCase,
  { ways, by }: Stage,
): Promise<TrafficSeen> {
  const usual: Ask = () => bench.doctor(fullyGiven(bench));
  await using undo = new AsyncDisposableStack();
  const later: Later = (undoIt) => undo.defer(async () => void (await undoIt()));
  const served = async () => void (await Promise.all(ways.map((way) => expectAnswers(way.from, way, { by }))));
  await served();
  const during = one.interrupts === true ? undefined : startTraffic(ways, later, LONGEST_MS);
  const ask = (await one.make(bench, later)) ?? usual;
  const found = await finding(advice, one.check, ask);
  const after = (await (one.follow ?? runPrinted)(bench, printed(found))) ?? usual;
  await served();
  const traffic = during ?? startTraffic(ways, later, LONGEST_MS);
  await served();
  if (one.stays !== true) await until(`the end of ${found.check}`, () => complaint(found, after));
  const seen = await traffic.stop();
  withoutFailure(seen);
  return seen;
}

export function textOf(all: readonly Diagnosis[]): string {
  const lines = all.filter(({ state }) => state !== "good");
  return lines
    .map(({ check, state, found, advice, adviceName }) => `${state} ${check}: ${found} → ${adviceName}: ${advice}`)
    .join("\n");
}

const LONGEST_MS = 300_000;

/** An agent may be in the middle of its start. */
async function finding(advice: AdviceName, check: string | undefined, ask: Ask): Promise<Diagnosis> {
  let found: Diagnosis | undefined;
  await until(`advice ${advice}`, async () => {
    const all = await ask();
    found = given(all, advice, check);
    return found === undefined ? textOf(all) : undefined;
  });
  if (found === undefined) throw new Error(`advice ${advice} was not given`);
  return found;
}

async function complaint({ check }: Diagnosis, ask: Ask): Promise<string | undefined> {
  const left = (await ask()).filter((one) => one.check === check && one.state !== "good");
  return left.length === 0 ? undefined : textOf(left);
}
