/** An empty node in memory, which notes what backends would start. */

import type { IpvsPort } from "@fairlead/backend-ipvs";
import type { HcnPort, Network } from "@fairlead/backend-windows";
import { slices } from "@fairlead/base";
import type { ForwardingPlan } from "@fairlead/core";
import {
  BUILTIN_CHAINS,
  type ChainState,
  commandText,
  type Destination,
  type IPFamily,
  type IptablesPort,
  renderLinkCommand,
  renderServerCommand,
  renderServerKey,
  renderSetCommand,
  type ServerCommand,
  type Table,
  type TableState,
  type VirtualServerState,
} from "@fairlead/netfilter";

/**
 * The iptables of a node without rules. What is restored goes into `texts` and changes
 * nothing. It is of the legacy variant, for which the backend makes one payload of everything.
 */
export function emptyRules(family: IPFamily, texts: ProgramTexts): IptablesPort {
  const program = family === "IPv4" ? "iptables-restore" : "ip6tables-restore";
  return {
    family,
    variant: "legacy",
    restore: (payload) => texts.add([program, "--noflush"], payload),
    save: async (table) => emptyTable(table),
    saveTables: async (tables) => new Map(tables.map((table) => [table, emptyTable(table)])),
    async *saveLines() {},
    chains: async (table) => new Set(BUILTIN_CHAINS[table]),
    texts: async () => new Map(),
    list: async (table, chain) => (BUILTIN_CHAINS[table].includes(chain) ? [] : undefined),
  };
}

/**
 * A node without virtual servers, sets and the service device. What is written goes into `texts`; the virtual servers
 * are given back as well, since the backend reads them again to see what the kernel made of them.
 */
export function emptyIpvs(family: IPFamily, texts: ProgramTexts): IpvsPort {
  const made = new Map<string, VirtualServerState & { readonly destinations: Destination[] }>();
  const make = (command: ServerCommand) => {
    const key = renderServerKey(command.server);
    if (command.kind === "add-server") made.set(key, { ...command.server, destinations: [] });
    if (command.kind === "add-destination") made.get(key)?.destinations.push(command.destination);
    return renderServerCommand(command);
  };
  return {
    servers: {
      save: async function* () {
        yield* made.values();
      },
      async *connections() {},
      change: (commands, turn) => texts.add(["ipvsadm", "--restore"], commandText(commands, make, turn)),
    },
    sets: {
      async *save() {},
      change: (commands, turn) =>
        texts.add(["ipset", "-exist", "restore"], commandText(commands, renderSetCommand, turn)),
    },
    links: {
      addresses: async () => undefined,
      change: (commands, turn) => texts.add(["ip", "-batch", "-"], commandText(commands, renderLinkCommand, turn)),
    },
    rules: emptyRules(family, texts),
  };
}

/**
 * HCN of a node that has its own pods. Ids are addresses, which say more than Windows' own.
 *
 * @param kind of the network
 */
export function emptyHcn(
  { groups }: ForwardingPlan,
  texts: ProgramTexts,
  kind: Pick<Network, "Type" | "Policies">,
): HcnPort {
  const used = [...groups.values()].flatMap(({ cluster, local }) => [...cluster, ...local]);
  const pods = new Set(used.flatMap(({ address, local }) => (local ? [address] : [])));
  const made = async (call: string, settings: object, id: string) => {
    await texts.add([call], [`${JSON.stringify(settings)}\n`]);
    return id;
  };
  const endpoint = async (id: string) => ({ ID: id, HostComputeNetwork: "", IpConfigurations: [{ IpAddress: id }] });
  const nothing = async () => undefined;
  return {
    version: async () => ({ Major: 15, Minor: 5 }),
    network: async (name) => ({ ID: name, Name: name, ...kind }),
    endpointIds: async () => [...pods],
    endpoint,
    endpointByName: endpoint,
    loadBalancerIds: async () => [],
    loadBalancer: nothing,
    createEndpoint: (settings) => made("HcnCreateEndpoint", settings, settings.IpConfigurations?.[0]?.IpAddress ?? ""),
    createLoadBalancer: (settings) => made("HcnCreateLoadBalancer", settings, ""),
    deleteEndpoint: nothing,
    modifyLoadBalancer: nothing,
    deleteLoadBalancer: nothing,
  };
}

/** Text that the agent would give to a program, or to functions of a library. */
export interface ProgramText {
  /** The program with its arguments, as it would be started; a function, one line of the text for each call. */
  readonly argv: readonly [program: string, ...args: string[]];
  /** Its pieces as they were written: where it is large, putting them together takes longer than using them. */
  readonly pieces: readonly string[];
}

/** Takes in, in order, what a backend writes; what goes to one program in a row is one text. */
export class ProgramTexts {
  readonly #texts: { readonly argv: ProgramText["argv"]; pieces: string[] }[] = [];

  async add(argv: ProgramText["argv"], payload: Iterable<string> | AsyncIterable<string>): Promise<void> {
    const last = this.#texts.at(-1);
    const into = last?.argv.join(" ") === argv.join(" ") ? last : { argv, pieces: [] };
    if (into !== last) this.#texts.push(into);
    const yielding = slices();
    for await (const piece of payload) {
      if (piece !== "") into.pieces.push(piece);
      const turn = yielding();
      if (turn !== undefined) await turn;
    }
  }

  all(): readonly ProgramText[] {
    return this.#texts.filter(({ pieces }) => pieces.length > 0);
  }
}

function emptyTable(table: Table): TableState {
  const chains = BUILTIN_CHAINS[table].map((name): [string, ChainState] => [
    name,
    { name, policy: "ACCEPT", rules: [] },
  ]);
  return { table, chains: new Map(chains) };
}
