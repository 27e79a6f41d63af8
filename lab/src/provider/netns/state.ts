import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Argv, Runner } from "@fairlead/kernel";
import type { PodNetwork } from "../../cni/flavor.ts";
import { messageOf } from "../../support/errors.ts";
import type { ClusterNode } from "../node.ts";

/** What is asked of every node; a program that is not there says so in its file. */
const QUESTIONS: Readonly<Record<string, Argv>> = {
  "iptables.txt": ["iptables-save", "-c"],
  "ip6tables.txt": ["ip6tables-save", "-c"],
  "nft.txt": ["nft", "list", "ruleset"],
  "ipset.txt": ["ipset", "save"],
  "ipvs.txt": ["ipvsadm", "-Ln"],
  "conntrack.txt": ["conntrack", "-L"],
  "conntrack6.txt": ["conntrack", "-L", "-f", "ipv6"],
  "addresses.txt": ["ip", "address"],
  "routes.txt": ["ip", "route", "show", "table", "all"],
  "routes6.txt": ["ip", "-6", "route", "show", "table", "all"],
  "neighbors.txt": ["ip", "neighbor"],
};

type Files = Record<string, string>;

export interface StateSources {
  readonly nodes: readonly (readonly [{ readonly runner: Runner }, ClusterNode])[];
  readonly networks: ReadonlyMap<string, Pick<PodNetwork, "state">>;
  /** Of the run: logs are looked for in it and one level below. */
  readonly folder: string;
}

export async function clusterState({ nodes, networks, folder }: StateSources): Promise<Readonly<Files>> {
  const parts = await Promise.all([
    ...nodes.map(([ground, node]) => nodeState(ground.runner, node)),
    ...[...networks].map(([name, network]) => networkState(name, network)),
    logs(folder),
  ]);
  return Object.assign({}, ...parts);
}

async function nodeState(runner: Runner, { name, agent }: ClusterNode): Promise<Files> {
  const answers = await Promise.all(
    Object.entries(QUESTIONS).map(async ([file, argv]) => [`${name}/${file}`, await output(runner, argv)] as const),
  );
  const ownership = await agent.get("/ownership").catch(messageOf);
  const metrics = await agent.get("/metrics").catch(messageOf);
  return {
    ...Object.fromEntries(answers),
    [`${name}/agent.log`]: await agent.log(),
    [`${name}/ownership.json`]: ownership,
    [`${name}/metrics.txt`]: metrics,
  };
}

function output(runner: Runner, argv: Argv): Promise<string> {
  return runner.run(argv, { timeoutMs: 60_000 }).then(({ stdout }) => stdout, messageOf);
}

async function networkState(name: string, network: Pick<PodNetwork, "state">): Promise<Files> {
  const files = await network.state().catch((error) => ({ "error.txt": messageOf(error) }));
  return Object.fromEntries(Object.entries(files).map(([file, text]) => [`${name}/${file}`, text]));
}

async function logs(folder: string): Promise<Files> {
  const names = (await readdir(folder, { recursive: true })).filter((name) => name.endsWith(".log"));
  const texts = await Promise.all(
    names.map(async (name) => [`logs/${name}`, await readFile(join(folder, name), "utf8").catch(messageOf)] as const),
  );
  return Object.fromEntries(texts);
}
