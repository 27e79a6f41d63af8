import { join } from "node:path";
import type { IPFamily } from "@fairlead/core";
import type { CniFlavor, CniGround, CniNode, PodAddresses, PodNetwork } from "../../../cni/flavor.ts";
import { applyLines, applySettings } from "../../../wire/apply.ts";
import { up, veth } from "../../../wire/ip-lines.ts";
import { daemonsHere, installFlavor } from "../../install-flavor.ts";
import { host } from "../../netns/ground.ts";
import { AttachedPods } from "./attached-pods.ts";
import { daemonsInPods, NETWORK_LABEL } from "./daemon-sets.ts";
import { type KindNetwork, type KindNetworkGround, writeConfig } from "./network.ts";
import { imageName, networkImage } from "./network-image.ts";
import { type PluginRequest, servePlugin } from "./plugin-server.ts";

const SOCKET = "plugin.sock";

/**
 * A flavor of lab/src/cni on kind's nodes: its programs run in DaemonSets of an image of their Debian packages. The
 * flavor configures them from this machine, and a CNI plugin of two lines has it connect each pod that a kubelet
 * starts.
 */
export async function delegated(ground: KindNetworkGround, opened: AsyncDisposableStack): Promise<KindNetwork> {
  const { cluster, flavor, families, folder, nodeFolder, configFolder } = ground;
  const nodes: readonly CniNode[] = cluster.nodes.map((node, at) => ({ ...node, index: at + 1 }));
  await addTunnelLinks(ground);
  const daemon = await daemons(ground, opened);
  const network = await installFlavor(flavor, { nodes, families, folder, daemon }, opened);
  const attach: PodNetwork["attach"] = async (pod) => {
    await applySettings(pod.runner, host);
    return network.attach(pod);
  };
  const pods = new AttachedPods({ ...network, attach }, nodes, flavor.name[0] ?? "p");
  opened.defer(() => pods.dispose());
  const server = await servePlugin(join(folder, SOCKET), {
    ADD: async (request) => result(await pods.add(request), request, families, flavor.name),
    DEL: async ({ container }) => {
      await pods.remove(container);
      return {};
    },
    CHECK: async () => ({}),
  });
  opened.defer(() => server.dispose());
  for (const node of cluster.nodes) {
    const plugin = { type: "test-ground", socket: join(nodeFolder, SOCKET) };
    await writeConfig(node, configFolder, flavor.name, { cniVersion: "1.0.0", name: flavor.name, plugins: [plugin] });
  }
  return { ...network, state: async () => ({ ...(await network.state()), ...(await logs(ground)) }) };
}

/** What is of the flavor's packages runs in pods, the test ground's own programs on this machine. */
async function daemons(ground: KindNetworkGround, opened: AsyncDisposableStack): Promise<CniGround["daemon"]> {
  const { cluster, api, flavor, folder, nodeFolder, progress } = ground;
  const here = daemonsHere(folder, opened);
  if (flavor.programs.length === 0) return here;
  const image = { name: flavor.name, packages: packagesOf(flavor) };
  await cluster.loadImage(await networkImage(image, progress));
  const inPods = daemonsInPods({ network: flavor.name, image: imageName(image), folder, nodeFolder }, api);
  const programs = flavor.programs.map(({ program }) => program);
  return (daemon) => (programs.includes(daemon.argv[0]) ? inPods(daemon) : here(daemon));
}

function packagesOf({ programs }: CniFlavor): readonly string[] {
  return [...new Set(programs.map(({ debian }) => debian))];
}

async function logs({ cluster, flavor }: KindNetworkGround): Promise<Readonly<Record<string, string>>> {
  const selector = `${NETWORK_LABEL}=${flavor.name}`;
  const { stdout } = await cluster.kubectl(["-n", "kube-system", "logs", "-l", selector, "--prefix", "--tail=-1"]);
  return { "pods.log": stdout };
}

/** Each node's `eth1` alongside its own address, for those who wrap packets. */
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
