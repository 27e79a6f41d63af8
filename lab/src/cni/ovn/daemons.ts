import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { CniGround, CniNode } from "../flavor.ts";
import { subnets } from "./addresses.ts";
import {
  centralFolder,
  databaseIsThere,
  nodeDatabase,
  nodeFolder,
  northboundDatabase,
  southboundDatabase,
} from "./clients.ts";

/** Where the agents of all nodes find OVN's southbound database. */
export const SOUTHBOUND_PORT = 6642;

const SWITCH_SCHEMA = "/usr/share/openvswitch/vswitch.ovsschema";
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
