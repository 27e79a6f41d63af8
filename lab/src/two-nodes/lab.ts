import type { Argv, Runner } from "@fairlead/kernel";
import { createNamespace, type NetworkNamespace } from "@fairlead/kernel/netns";
import { type Host, NODE_A, NODE_B } from "@fairlead/testkit";
import { type Peer, startPeer } from "../peer/process.ts";
import type { ListenPorts } from "../peer/protocol.ts";
import { applyLines, applySettings, runnerIn } from "../wire/apply.ts";
import type { IpLines } from "../wire/ip-lines.ts";
import { kernelSettings } from "../wire/settings.ts";
import { FIXED_NAMESPACES, type FixedNamespace, namespaceOf, pods } from "./topology.ts";
import { fabricLines, fabricRules, outsideLines, sinkLines } from "./wire-fabric.ts";
import { nodeLines, podLines } from "./wire-node.ts";

export interface LabOptions {
  /** Where pods listen. */
  readonly podPorts: ListenPorts;
  /** Where the nodes and the sink listen, so that what is left alone is answered too. */
  readonly landingPorts: ListenPorts;
}

/** The running test ground. */
export interface Lab {
  readonly namespaces: ReadonlyMap<string, NetworkNamespace>;
  namespace(name: string): NetworkNamespace;
  /** Runs programs inside a namespace. */
  runner(name: string): Runner;
  peer(host: Host): Peer;
  dispose(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * Builds the whole test ground. What it started ends with `dispose`, or with this process in whatever way it ends.
 *
 * @throws Error that says what the machine does not allow or what failed
 */
export async function openLab(options: LabOptions): Promise<Lab> {
  const opened = new AsyncDisposableStack();
  try {
    const namespaces = await openNamespaces(opened);
    await wire(namespaces);
    const peers = await startPeers(namespaces, options, opened);
    const kept = opened.move();
    const dispose = () => kept.disposeAsync();
    return {
      namespaces,
      namespace: (name) => known(namespaces, name),
      runner: (name) => runnerIn(known(namespaces, name)),
      peer: (host) => known(peers, namespaceOf(host)),
      dispose,
      [Symbol.asyncDispose]: dispose,
    };
  } catch (error) {
    await opened.disposeAsync();
    throw error;
  }
}

async function openNamespaces(opened: AsyncDisposableStack): Promise<ReadonlyMap<string, NetworkNamespace>> {
  const [first, ...others] = [...FIXED_NAMESPACES, ...pods.map(({ name }) => name)];
  const base = opened.use(await createNamespace());
  const more = await Promise.all(
    others.map(async (name) => [name, opened.use(await createNamespace({ beside: base }))] as const),
  );
  return new Map([[first, base], ...more]);
}

async function wire(namespaces: ReadonlyMap<string, NetworkNamespace>): Promise<void> {
  const pids = new Map([...namespaces].map(([name, { pid }]) => [name, pid]));
  const pid = (name: FixedNamespace) => known(pids, name);
  const runner = (name: string) => runnerIn(known(namespaces, name));
  await Promise.all([...namespaces.keys()].map((name) => applySettings(runner(name), kernelSettings(name))));
  const link = (name: string, lines: IpLines) => applyLines(runner(name), lines);
  await link(
    "fabric",
    fabricLines({ "node-a": pid("node-a"), "node-b": pid("node-b"), outside: pid("outside"), sink: pid("sink") }),
  );
  await Promise.all(["-4", "-6"].map((family) => applyLines(runner("fabric"), fabricRules, [family])));
  await Promise.all([NODE_A, NODE_B].map((node) => link(node.name, nodeLines(node, pids))));
  await Promise.all([
    link("sink", sinkLines()),
    ...["iptables", "ip6tables"].map((tool) => runner("sink").run(ownUdpAnswers(tool))),
    link("outside", outsideLines()),
    ...pods.map((pod) => link(pod.name, podLines(pod))),
  ]);
}

async function startPeers(
  namespaces: ReadonlyMap<string, NetworkNamespace>,
  { podPorts, landingPorts }: LabOptions,
  opened: AsyncDisposableStack,
): Promise<ReadonlyMap<string, Peer>> {
  const landings: readonly string[] = ["node-a", "node-b", "sink"];
  const names = [...namespaces.keys()].filter((name) => name !== "fabric");
  const peers = await Promise.all(
    names.map(async (name) => {
      const listen = landings.includes(name) ? landingPorts : podPorts;
      const peer = await startPeer(known(namespaces, name), { name, listen });
      opened.defer(() => peer.stop());
      return [name, peer] as const;
    }),
  );
  return new Map(peers);
}

/** A datagram to an address that the sink has taken in is answered from that address: only NAT remembers it. */
function ownUdpAnswers(tool: string): Argv {
  return [tool, "-t", "nat", "-A", "PREROUTING", "-p", "udp", "-j", "REDIRECT"];
}

function known<T>(map: ReadonlyMap<string, T>, name: string): T {
  const value = map.get(name);
  if (value === undefined) throw new Error(`there is no ${name} in the lab`);
  return value;
}
