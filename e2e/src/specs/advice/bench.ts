import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { AdviceName, Diagnosis } from "@fairlead/inspect";
import { agentFile } from "@fairlead/lab/agent";
import { kubeconfig } from "@fairlead/lab/control-plane/control-plane";
import type { ClusterNode, NodeProxy } from "@fairlead/lab/provider/cluster";
import { SERVICE_CIDRS } from "@fairlead/lab/provider/netns/ground";
import { tool } from "@fairlead/lab/tools/fairlead";
import { type Operator, openOperator } from "../operator.ts";
import type { Scene } from "../scene.ts";
import { ONE_IS_AN_ANSWER, openKubeconfig } from "../tool-on.ts";

/** One node whose doctor is asked, and what cases need of it. */
export interface Bench {
  readonly scene: Scene;
  readonly node: ClusterNode;
  /** Good on the node. */
  readonly kubeconfig: string;
  /** Where the operator is, with the nodes behind the API server. */
  readonly operator: Operator;
  /** The node's proxy while no case is under way. */
  readonly proxy: NodeProxy;
  /** Runs a shell's line on the node. */
  sh(line: string): Promise<string>;
  /** `fairlead doctor` on the node, as root. @param before a program that starts it */
  doctor(args?: readonly string[], before?: readonly string[]): Promise<readonly Diagnosis[]>;
  /** The operator's kubeconfig with that user's rights only. */
  operatorAs(user: string): Promise<string>;
  /** A kubeconfig for the node that differs in fields. */
  otherKubeconfig(fields: { readonly server?: string; readonly as?: string }): Promise<string>;
}

/** What a case is followed by: the advice that was printed. */
export interface Printed {
  readonly text: string;
  /** In backticks. */
  readonly commands: readonly string[];
}

export async function openBench(scene: Scene, proxy: NodeProxy): Promise<Bench> {
  const [, node] = scene.nodes;
  const file = await openKubeconfig(scene);
  const folder = await mkdtemp(join(tmpdir(), `fairlead-e2e-${process.pid}-advice-`));
  scene.later(() => rm(folder, { recursive: true }));
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

/** With everything that a doctor on the node cannot know by itself. */
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
