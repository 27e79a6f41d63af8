import { access } from "node:fs/promises";
import { join } from "node:path";
import type { Argv, Runner } from "@fairlead/kernel";
import { waitUntil } from "../../agent/wait-until.ts";
import type { CniNode } from "../flavor.ts";
import type { NbCommand } from "./topology.ts";

/** What OVN and Open vSwitch are asked and told, on one cluster. */
export interface OvnClients {
  /** All commands in one transaction. @param wait until the flows for it are on every node */
  northbound(commands: readonly NbCommand[], wait?: "hv"): Promise<string>;
  southbound(...words: readonly string[]): Promise<string>;
  /** Open vSwitch's database of a node. */
  vswitch(node: CniNode, ...words: readonly string[]): Promise<string>;
}

/** Seconds that a tool waits for an answer. */
const PATIENCE = "--timeout=120";
const SOCKET_MS = 60_000;

export function centralFolder(folder: string): string {
  return join(folder, "central");
}

export function nodeFolder(folder: string, { name }: CniNode): string {
  return join(folder, name);
}

export function nodeDatabase(folder: string, node: CniNode): string {
  return `unix:${join(nodeFolder(folder, node), "db.sock")}`;
}

export function northboundDatabase(folder: string): string {
  return `unix:${join(centralFolder(folder), "nb.sock")}`;
}

export function southboundDatabase(folder: string): string {
  return `unix:${join(centralFolder(folder), "sb.sock")}`;
}

/** @param database `unix:PATH` */
export function northboundClient(runner: Runner, database: string): OvnClients["northbound"] {
  return (commands, wait) => {
    const words = commands.flatMap((command) => ["--", ...command]);
    const flags = wait === undefined ? [] : [`--wait=${wait}`];
    return output(runner, ["ovn-nbctl", PATIENCE, `--db=${database}`, ...flags, ...words]);
  };
}

/** @param first the node that OVN's databases are on */
export function openClients(folder: string, { runner }: CniNode): OvnClients {
  return {
    northbound: northboundClient(runner, northboundDatabase(folder)),
    southbound: (...words) => output(runner, ["ovn-sbctl", PATIENCE, `--db=${southboundDatabase(folder)}`, ...words]),
    vswitch: (node, ...words) =>
      output(node.runner, ["ovs-vsctl", PATIENCE, `--db=${nodeDatabase(folder, node)}`, ...words]),
  };
}

async function output(runner: Runner, argv: Argv): Promise<string> {
  return (await runner.run(argv)).stdout;
}

/** The databases make their sockets when they can be asked. @param database `unix:PATH` */
export async function databaseIsThere(database: string): Promise<void> {
  await waitUntil(database, SOCKET_MS, () =>
    access(database.slice("unix:".length)).then(
      () => true,
      () => undefined,
    ),
  );
}
