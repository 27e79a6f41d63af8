import { IP_FAMILIES, type IPFamily } from "@fairlead/base";
import type { KernelVersion } from "@fairlead/lab/qemu/kernel-versions";
import { type Lived, livedIn, NODE, printedAfter, runInGuest } from "../qemu/guest.ts";
import { CLIENT, ENDPOINTS, UPLINKS, type UplinkName } from "./ground.ts";
import { guest, PROTOCOLS, type Protocol, SERVICES } from "./objects.ts";

/** A client, and where it sends to. */
interface Way {
  readonly name: string;
  readonly from: string;
  readonly protocol: Protocol;
  readonly to: string;
  readonly port: number;
}

/** What clients behind an uplink ask the first proxy for. */
export function waysOf(uplink: UplinkName): readonly Way[] {
  const { web, kept } = SERVICES;
  const at = (family: IPFamily) => UPLINKS[uplink].node[family];
  return each(uplink, (family) => ({
    "node port": { to: at(family), port: web.nodePort },
    "load balancer": { to: web.loadBalancer[family], port: web.port },
    "load balancer, policy Local": { to: kept.loadBalancer[family], port: kept.port },
  }));
}

/** What clients ask the second instance for. */
export const STORAGE_WAYS: readonly Way[] = [
  ...[CLIENT, NODE].flatMap((from) =>
    each(from, (family) => ({ ClusterIP: { to: SERVICES.storage.clusterIP[family], port: SERVICES.storage.port } })),
  ),
  ...(["first", "second"] as const).flatMap((uplink) =>
    each(uplink, (family) => ({
      "node port": { to: UPLINKS[uplink].node[family], port: SERVICES.storage.nodePort },
    })),
  ),
];

/** Smaller than all links. */
export const NARROW = 1_300;

const CLEANUP = { first: "--cleanup", named: "$NAMED --cleanup" } as const;

/** One guest, in which proxies come and go. */
export async function packetsOn(version: KernelVersion): Promise<Seen> {
  return new Seen(
    await runInGuest(version, guest(), [
      "first_agent plain",
      ...loadLines("without", [...waysOf("first"), ...waysOf("second")]),
      "end TERM $first",
      "first_agent reply-via",
      ...loadLines("with", [...waysOf("first"), ...waysOf("second")]),
      ...mtuLines(),
      ...loadLines("killed", waysOf("second"), ["end KILL $first", "first_agent reply-via"]),
      "storage both",
      "start_named",
      ...loadLines("named", STORAGE_WAYS),
      ...loadLines(
        "changes",
        [...STORAGE_WAYS, ...waysOf("first")],
        [
          ...["one", "other", "both"].map((state) => `storage ${state}`),
          ...["end KILL $named", "start_named", "end TERM $first", "first_agent reply-via"],
        ],
      ),
      'echo "there $(left .)"',
      ...loadLines("cleaned", waysOf("first"), ["end TERM $named", cleanupLine("named")]),
      'echo "left-named $(left fairlead-storage)"',
      "end TERM $first",
      cleanupLine("first"),
      'echo "left-all $(left .)"',
      ...["plain_names", 'start_kube_proxy "kube-proxy has virtual servers" kube_proxy_serves', "start_named"],
      ...loadLines("kube-proxy", [...STORAGE_WAYS, ...waysOf("first")], ["storage one", "storage both"]),
      ...["end TERM $named", cleanupLine("named"), 'echo "left-beside $(left fairlead)"'],
    ]),
  );
}

/** What the guest printed. */
export class Seen {
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  /** @throws Error where nothing was printed of it */
  lived(phase: string, { name }: Way): Lived {
    return livedIn(this.after(keyOf(phase, name)));
  }

  /** What is printed after a key. @throws Error where it was not printed */
  after(key: string): string {
    return printedAfter(this.#text, key);
  }
}

function each(
  from: string,
  targets: (family: IPFamily) => Readonly<Record<string, Pick<Way, "to" | "port">>>,
): readonly Way[] {
  return IP_FAMILIES.flatMap((family) =>
    PROTOCOLS.flatMap((protocol) =>
      Object.entries(targets(family)).map(([what, target]) => {
        const name = `${protocol} ${family} from ${from} to ${what}`;
        return { name, from, protocol, ...target };
      }),
    ),
  );
}

function keyOf(phase: string, name: string): string {
  return `${phase}-${name.replaceAll(/[ ,]+/g, "-")}`;
}

/** Flows, milliseconds between questions, bytes. */
const LOAD = "9 100 64";

/** Flows of all ways at the same time, while something happens. */
function loadLines(phase: string, ways: readonly Way[], lines: readonly string[] = []): readonly string[] {
  const starts = ways.map(
    ({ name, from, protocol, port, to }) =>
      `start_asking ${keyOf(phase, name)} ${from} ${protocol} ${port} ${to} ${LOAD}`,
  );
  return [...starts, "sleep 1", ...lines, "sleep 1", "stop_asking"];
}

/** The way to the endpoints gets narrow. */
function mtuLines(): readonly string[] {
  return IP_FAMILIES.flatMap((family) => {
    const { loadBalancer, port } = SERVICES.web;
    const ways = ENDPOINTS.eth0[family].map((pod) => `${pod} dev to-eth0 mtu lock ${NARROW}`);
    return [
      ...ways.map((way) => `ip -n ${NODE} route add ${way}`),
      ...(["first", "second"] as const).map(
        (uplink) => `echo "mtu-${uplink}-${family} $(known_mtu ${uplink} ${port} ${loadBalancer[family]})"`,
      ),
      ...ways.map((way) => `ip -n ${NODE} route delete ${way}`),
    ];
  });
}

function cleanupLine(proxy: keyof typeof CLEANUP): string {
  return `(agent ${CLEANUP[proxy]} >> /tmp/${proxy}.log 2>&1)`;
}
