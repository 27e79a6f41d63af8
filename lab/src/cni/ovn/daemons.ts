/** OVN's and Open vSwitch's daemons, and clients of their databases. */

import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { IPFamily } from "@fairlead/core";
import type { Argv, Runner } from "@fairlead/kernel";
import { isThere } from "../../support/machine.ts";
import { waitUntil } from "../../support/wait-until.ts";
import { type CniGround, type CniNode, nodeSubnets } from "../flavor.ts";

export type NbCommand = readonly string[];

/** Where the agents of all nodes find OVN's southbound database. */
export const SOUTHBOUND_PORT = 6642;

const ovnSchema = (part: string) => `/usr/share/ovn/ovn-${part}.ovsschema`;

/** OVN's databases and ovn-northd, as a pod with the first node's network. */
export async function startCentral(ground: CniGround, node: CniNode): Promise<void> {
  const own = centralFolder(ground.folder);
  await mkdir(own);
  const everywhere = ground.families.includes("IPv4") ? "0.0.0.0" : "[::]";
  await Promise.all([
    database(ground, node, { own, name: "nb", schema: ovnSchema("nb") }),
    database(ground, node, {
      own,
      name: "sb",
      schema: ovnSchema("sb"),
      listen: `ptcp:${SOUTHBOUND_PORT}:${everywhere}`,
    }),
  ]);
  const databases = { north: northboundDatabase(ground.folder), south: southboundDatabase(ground.folder) };
  await Promise.all(Object.values(databases).map(databaseIsThere));
  const argv = [`--ovnnb-db=${databases.north}`, `--ovnsb-db=${databases.south}`, control(own, "northd")] as const;
  await ground.daemon({ node, name: "northd", argv: ["ovn-northd", ...argv], env: folders(own) });
}

const SWITCH_SCHEMA = "/usr/share/openvswitch/vswitch.ovsschema";

/** The node's own database and switch. */
export async function startSwitch(ground: CniGround, node: CniNode): Promise<void> {
  const own = nodeFolder(ground.folder, node);
  await mkdir(own);
  await database(ground, node, { own, name: "db", schema: SWITCH_SCHEMA });
  const socket = nodeDatabase(ground.folder, node);
  await databaseIsThere(socket);
  const argv = ["ovs-vswitchd", socket, control(own, "vswitchd")] as const;
  await ground.daemon({ node, name: `${node.name}-vswitchd`, argv: [...argv], env: folders(own) });
}

/** OVN's agent on a node, once its switch is set up. */
export async function startController({ folder, daemon }: CniGround, node: CniNode): Promise<void> {
  const env = folders(nodeFolder(folder, node));
  await daemon({ node, name: `${node.name}-controller`, argv: ["ovn-controller", nodeDatabase(folder, node)], env });
}

const CONTROLLER = fileURLToPath(new URL("controller/main.ts", import.meta.url));

/** Has OVN's load balancer serve all services, for OVN's pods. @param kubeconfig may annotate services */
export async function startServiceController(ground: CniGround, node: CniNode, kubeconfig: string): Promise<void> {
  const { families, folder, daemon } = ground;
  const argv = [
    process.execPath,
    ...["--conditions=@fairlead/source", "--no-warnings", CONTROLLER],
    `--kubeconfig=${kubeconfig}`,
    `--northbound=${northboundDatabase(folder)}`,
    ...families.map((family) => `--pod-cidr=${subnets.podCIDRs[family]}`),
  ] as const;
  await daemon({ node, name: "service-controller", argv: [...argv] });
}

/** Reads and writes OVN and Open vSwitch, on one cluster. */
export interface OvnClients {
  /** All commands in one transaction. @param wait until the flows for it are on every node */
  northbound(commands: readonly NbCommand[], wait?: "hv"): Promise<string>;
  southbound(...words: readonly string[]): Promise<string>;
  /** Open vSwitch's database of a node. */
  vswitch(node: CniNode, ...words: readonly string[]): Promise<string>;
}

export function nodeFolder(folder: string, { name }: CniNode): string {
  return join(folder, name);
}

/** Seconds that a tool waits for an answer. */
const PATIENCE = "--timeout=120";

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

/** Each node has a subnet of the pods' addresses, a logical switch, whose gateway is the router. */
export const subnets = nodeSubnets("10.244", "fd00:244::");

/** Between the router and the nodes. */
export const JOIN_CIDRS: Readonly<Record<IPFamily, string>> = { IPv4: "100.64.0.0/16", IPv6: "fd00:100:64::/112" };

export const JOIN_LENGTH: Readonly<Record<IPFamily, number>> = { IPv4: 16, IPv6: 112 };

/** 1 is the router, the nodes follow. */
const inJoin: Readonly<Record<IPFamily, (host: number) => string>> = {
  IPv4: (host) => `100.64.0.${host}`,
  IPv6: (host) => `fd00:100:64::${host.toString(16)}`,
};

export function joinRouter(family: IPFamily): string {
  return inJoin[family](1);
}

export function joinNode(family: IPFamily, node: number): string {
  return inJoin[family](1 + node);
}

/**
 * Where the tunnels end: a network of their own on the nodes' second interface. Geneve over IPv4 carries both families.
 */
export function tunnelAddress(node: number): string {
  return `172.30.1.${10 + node}`;
}
export const TUNNEL_LENGTH = 24;

/**
 * One for everything that has a port; `part` says what it is: 0 the tunnel, 1 the node's port, 2 the router's, 3 a
 * pod's.
 */
export function mac(part: number, node: number, host = 0): string {
  return ["0a", "58", "f4", part, node, host]
    .map((byte) => (typeof byte === "string" ? byte : byte.toString(16).padStart(2, "0")))
    .join(":");
}

interface DatabaseFields {
  readonly own: string;
  /** Of its file and its socket, `NAME.sock`. */
  readonly name: string;
  readonly schema: string;
  /** Alongside the socket. */
  readonly listen?: string;
}

async function database({ daemon }: CniGround, node: CniNode, fields: DatabaseFields): Promise<void> {
  const { own, name, schema, listen } = fields;
  const file = join(own, `${name}.ovsdb`);
  await node.runner.run(["ovsdb-tool", "create", file, schema]);
  const remotes = [
    `--remote=punix:${join(own, `${name}.sock`)}`,
    ...(listen === undefined ? [] : [`--remote=${listen}`]),
  ];
  const argv = ["ovsdb-server", file, ...remotes, control(own, `${name}-server`)] as const;
  await daemon({ node, name: `${node.name}-${name}-server`, argv: [...argv], env: folders(own) });
}

function control(own: string, name: string): string {
  return `--unixctl=${join(own, `${name}.ctl`)}`;
}

/** Without these the programs meet in /var/run, with those of other clusters and of the machine itself. */
function folders(own: string): Readonly<Record<string, string>> {
  const kinds = ["RUNDIR", "LOGDIR", "DBDIR", "SYSCONFDIR"];
  return Object.fromEntries(["OVS", "OVN"].flatMap((project) => kinds.map((kind) => [`${project}_${kind}`, own])));
}

const SOCKET_MS = 60_000;

function centralFolder(folder: string): string {
  return join(folder, "central");
}

function nodeDatabase(folder: string, node: CniNode): string {
  return `unix:${join(nodeFolder(folder, node), "db.sock")}`;
}

function northboundDatabase(folder: string): string {
  return `unix:${join(centralFolder(folder), "nb.sock")}`;
}

function southboundDatabase(folder: string): string {
  return `unix:${join(centralFolder(folder), "sb.sock")}`;
}

async function output(runner: Runner, argv: Argv): Promise<string> {
  return (await runner.run(argv)).stdout;
}

/** The databases make their sockets when they can be asked. @param database `unix:PATH` */
async function databaseIsThere(database: string): Promise<void> {
  await waitUntil(database, SOCKET_MS, async () => (await isThere(database.slice("unix:".length))) || undefined);
}
