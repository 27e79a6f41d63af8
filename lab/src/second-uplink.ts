import type { IPFamily } from "@fairlead/core";
import type { Argv, Runner, RunResult } from "@fairlead/kernel";
import { createNamespace, type NetworkNamespace } from "@fairlead/kernel/netns";
import { startPeer } from "./peer/process.ts";
import type { Probe, ProbeResult } from "./peer/protocol.ts";
import { orDispose } from "./support/processes.ts";
import {
  ANYWHERE,
  address,
  applyLines,
  applySettings,
  type IpLines,
  kernelSettings,
  route,
  runnerIn,
  up,
  veth,
} from "./wire.ts";

/** An interface of a node that leads to a router of its own, and a client beyond that. */
export interface SecondUplink {
  /** All that it sends goes to the node, by the router. */
  readonly client: {
    readonly name: string;
    readonly addresses: Readonly<Partial<Record<IPFamily, string>>>;
    send(probe: Probe): Promise<readonly ProbeResult[]>;
  };
  /** Runs a program where the client is. */
  run(argv: Argv): Promise<RunResult>;
  address(family: IPFamily): string;
  /** Takes the interface down, as its driver or an operator does; the node's routes by it go. */
  down(): Promise<void>;
  /** Takes it up with address and routes, as a network manager does. */
  up(): Promise<void>;
  /** Deletes the interface, and makes another one of its name. */
  replace(): Promise<void>;
  /** Gives the node the next address there in place of the one that it has. */
  renumber(): Promise<void>;
  /** The way back to the client is narrower behind the router, which says so by ICMP. @param bytes at least 1280 */
  narrow(bytes: number): Promise<void>;
  /** Removes all of it. */
  dispose(): Promise<void>;
}

/** The interface on the node. */
const UPLINK = "up1";

const ON_LINK = {
  IPv4: { prefix: "10.221.0.", length: 24 },
  IPv6: { prefix: "fd00:221::", length: 64 },
} as const satisfies Record<IPFamily, unknown>;

const BEHIND = {
  IPv4: { router: "198.19.0.1", client: "198.19.0.7", length: 24 },
  IPv6: { router: "fd00:19::1", client: "fd00:19::7", length: 64 },
} as const satisfies Record<IPFamily, unknown>;

/** Behind that of the first uplink, of either family. */
const METRIC = 2_000;

export function openSecondUplink(
  { namespace: alongside, runner: node }: { readonly namespace: NetworkNamespace; readonly runner: Runner },
  families: readonly IPFamily[],
): Promise<SecondUplink> {
  return orDispose(async (opened) => {
    const [router, client] = await Promise.all([createNamespace({ alongside }), createNamespace({ alongside })]);
    opened.use(router);
    opened.use(client);
    const [onRouter, onClient] = [runnerIn(router), runnerIn(client)];
    await applySettings(onRouter, kernelSettings("fabric"));
    await applySettings(onClient, kernelSettings("outside"));
    await applyLines(onRouter, [
      veth("behind", "eth0", client.pid),
      up("behind"),
      ...families.map((family) => address("behind", `${BEHIND[family].router}/${BEHIND[family].length}`)),
    ]);
    await applyLines(onClient, [
      up("eth0"),
      ...families.flatMap((family) => [
        address("eth0", `${BEHIND[family].client}/${BEHIND[family].length}`),
        route(ANYWHERE[family], { via: BEHIND[family].router }),
      ]),
    ]);
    let host = 10;
    const onNode = (lines: IpLines) => applyLines(node, lines);
    const towardNode = () => applyLines(onRouter, routerLines(families, host));
    const make = async () => {
      await onNode([veth(UPLINK, "node", router.pid), ...nodeLines(families, host)]);
      await towardNode();
    };
    await make();
    opened.defer(() => onNode([`link delete ${UPLINK}`]));
    const peer = await startPeer(client, { name: "behind", listen: { tcp: [], udp: [] } });
    opened.defer(() => peer.stop());
    return {
      client: {
        name: "behind",
        addresses: Object.fromEntries(families.map((family) => [family, BEHIND[family].client])),
        send: (probe) => peer.send(probe),
      },
      run: (argv) => onClient.run(argv),
      address: (family) => `${ON_LINK[family].prefix}${host}`,
      down: () => onNode([`link set ${UPLINK} down`]),
      up: async () => onNode([`address flush dev ${UPLINK}`, ...nodeLines(families, host)]),
      replace: async () => {
        await onNode([`link delete ${UPLINK}`]);
        await make();
      },
      renumber: async () => {
        host += 1;
        await onNode([`address flush dev ${UPLINK}`, ...nodeLines(families, host)]);
        await towardNode();
      },
      narrow: (bytes) =>
        applyLines(
          onRouter,
          families.map((family) => `route replace ${BEHIND[family].client} dev behind mtu lock ${bytes}`),
        ),
      dispose: () => opened.disposeAsync(),
    };
  });
}

function nodeLines(families: readonly IPFamily[], host: number): IpLines {
  return [
    up(UPLINK),
    ...families.flatMap((family) => {
      const { prefix, length } = ON_LINK[family];
      return [
        address(UPLINK, `${prefix}${host}/${length}`),
        `route replace ${ANYWHERE[family]} via ${prefix}1 dev ${UPLINK} metric ${METRIC}`,
      ];
    }),
  ];
}

function routerLines(families: readonly IPFamily[], host: number): IpLines {
  return [
    up("node"),
    ...families.flatMap((family) => {
      const { prefix, length } = ON_LINK[family];
      return [
        `address replace ${prefix}1/${length} dev node ${family === "IPv6" ? "nodad" : ""}`,
        `route replace ${ANYWHERE[family]} via ${prefix}${host}`,
      ];
    }),
  ];
}
