import { join } from "node:path";
import type { CniGround, CniNode } from "../flavor.ts";
import { nodeFolder, type OvnClients } from "./clients.ts";

type File = readonly [name: string, text: string];

/** What OVN and the switches know. */
export async function ovnState(
  clients: OvnClients,
  { nodes, folder }: CniGround,
): Promise<Readonly<Record<string, string>>> {
  const files = await Promise.all([...central(clients), ...nodes.flatMap((node) => onNode(clients, node, folder))]);
  return Object.fromEntries(files);
}

function central({ northbound, southbound }: OvnClients): readonly Promise<File>[] {
  return [
    named("northbound.txt", northbound([["show"]])),
    named("load-balancers.txt", northbound([["lb-list"]])),
    named("router-policies.txt", northbound([["lr-policy-list", "fairlead-router"]])),
    named("southbound.txt", southbound("show")),
    named("logical-flows.txt", southbound("lflow-list")),
  ];
}

function onNode({ vswitch }: OvnClients, node: CniNode, folder: string): readonly Promise<File>[] {
  const own = join(nodeFolder(folder, node), "vswitchd.ctl");
  const ask = async (...words: string[]) => (await node.runner.run(["ovs-appctl", "-t", own, ...words])).stdout;
  return [
    named(`${node.name}-switch.txt`, vswitch(node, "show")),
    named(`${node.name}-datapath-flows.txt`, ask("dpctl/dump-flows", "netdev@ovs-netdev")),
    named(`${node.name}-datapath-conntrack.txt`, ask("dpctl/dump-conntrack", "netdev@ovs-netdev")),
    named(`${node.name}-tunnel-routes.txt`, ask("ovs/route/show")),
    named(`${node.name}-tunnel-neighbors.txt`, ask("tnl/neigh/show")),
  ];
}

async function named(name: string, text: Promise<string>): Promise<File> {
  return [name, await text.catch((error: unknown) => String(error))];
}
