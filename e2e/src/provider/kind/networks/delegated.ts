import { join } from "node:path";
import type { IPFamily } from "@fairlead/core";
import type { CniNode, PodAddresses } from "../../../../cni/flavour.ts";
import { applyLines } from "../../../lab/apply.ts";
import { up, veth } from "../../../lab/ip-lines.ts";
import { installFlavour } from "../../install-flavour.ts";
import { AttachedPods } from "./attached-pods.ts";
import { type KindNetwork, type KindNetworkGround, writeConfig } from "./network.ts";
import { type PluginRequest, servePlugin } from "./plugin-server.ts";

/**
 * A flavour of e2e/cni on kind's nodes: its programs run on this machine in the nodes' networks, and a CNI plugin of two
 * lines has it connect each pod that a kubelet starts.
 */
export async function delegated(ground: KindNetworkGround, opened: AsyncDisposableStack): Promise<KindNetwork> {
  const { cluster, flavour, families, folder, sockets, configFolder } = ground;
  const nodes: readonly CniNode[] = cluster.nodes.map((node, at) => ({ ...node, index: at + 1 }));
  await addTunnelLinks(ground);
  const network = await installFlavour(flavour, { nodes, families }, folder, opened);
  const pods = new AttachedPods(network, nodes, flavour.name[0] ?? "p");
  opened.defer(() => pods.dispose());
  const socket = `${flavour.name}.sock`;
  const server = await servePlugin(join(sockets, socket), {
    ADD: async (request) => result(await pods.add(request), request, families, flavour.name),
    DEL: async ({ container }) => {
      await pods.remove(container);
      return {};
    },
    CHECK: async () => ({}),
  });
  opened.defer(() => server.dispose());
  for (const node of cluster.nodes) {
    const plugin = { type: "test-ground", socket: `/run/fairlead-e2e/${socket}` };
    await writeConfig(node, configFolder, flavour.name, { cniVersion: "1.0.0", name: flavour.name, plugins: [plugin] });
  }
  return network;
}

/** Each node's `eth1` beside its own address, for those who wrap packets. */
async function addTunnelLinks({ cluster, machine }: KindNetworkGround): Promise<void> {
  for (const [at, node] of cluster.nodes.entries()) {
    const there = await node.runner.run(["ip", "link", "show", "eth1"]).then(
      () => true,
      () => false,
    );
    if (there) continue;
    const name = `tunnel-${at}`;
    await applyLines(machine.network.runner, [
      veth(name, "eth1", node.namespace.pid),
      `link set ${name} master br0`,
      up(name),
    ]);
    await applyLines(node.runner, [up("eth1")]);
  }
}

/** What the specification wants of ADD. */
function result(addresses: PodAddresses, { netns }: PluginRequest, families: readonly IPFamily[], network: string) {
  const ips = families.map((family) => {
    const address = addresses[family];
    if (address === undefined) throw new Error(`${network} gave the pod no ${family} address`);
    return { address: `${address}/${family === "IPv4" ? 32 : 128}`, interface: 0 };
  });
  return { cniVersion: "1.0.0", interfaces: [{ name: "eth0", sandbox: netns }], ips };
}
