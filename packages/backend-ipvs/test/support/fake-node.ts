import type { IPFamily } from "@fairlead/core";
import { FakeIpset, FakeIptables, FakeIpvsadm, FakeLinks, Faults } from "@fairlead/kernel/fake";
import {
  type Rule,
  type RuleSet,
  renderRule,
  renderServerCommand,
  renderServerKey,
  type SetState,
  type VirtualServerState,
} from "@fairlead/netfilter";
import { DEVICE, type IpvsPort } from "../../src/index.ts";

/** A node's kernel in memory, as far as ipvs mode touches it; one count of processes and faults for all of it. */
export class FakeNode {
  readonly faults = new Faults();
  readonly servers: FakeIpvsadm;
  readonly sets: FakeIpset;
  readonly links = new FakeLinks({ faults: this.faults, netlink: true });
  readonly rules: Readonly<Record<IPFamily, FakeIptables>>;

  readonly #isLarge: boolean;

  constructor(
    options: {
      readonly schedulers?: readonly string[];
      readonly largeTables?: boolean;
      readonly maxElements?: number;
    } = {},
  ) {
    const { schedulers, largeTables = false, maxElements } = options;
    this.#isLarge = largeTables;
    this.servers = new FakeIpvsadm({ faults: this.faults, netlink: true, ...(schedulers && { schedulers }) });
    const inUse = (name: string) => this.#isNamed(name);
    this.sets = new FakeIpset({ faults: this.faults, netlink: true, inUse, ...(maxElements && { maxElements }) });
    const shared = { variant: "legacy", faults: this.faults, sets: this.sets } as const;
    this.rules = {
      IPv4: new FakeIptables({ family: "IPv4", ...shared }),
      IPv6: new FakeIptables({ family: "IPv6", ...shared }),
    };
  }

  port(family: IPFamily): IpvsPort {
    return {
      servers: this.servers,
      sets: this.sets,
      links: this.links,
      rules: withGlance(this.rules[family], this.#isLarge),
    };
  }

  /**
   * The calls to the kernel that `work` makes, by the names of their programs, or `netlink` where no process is
   * started.
   */
  async calls(work: () => Promise<unknown>): Promise<string[]> {
    const before = this.faults.calls.length;
    await work();
    return this.faults.calls.slice(before).map(({ argv }) => argv.slice(0, 3).join(" "));
  }

  async processes(work: () => Promise<unknown>): Promise<string[]> {
    return (await this.calls(work)).filter((call) => !call.startsWith("netlink "));
  }

  #isNamed(set: string): boolean {
    return Object.values(this.rules).some((tables) => rulesOf(tables.ruleSet()).some((rule) => names(rule, set)));
  }
}

/**
 * What the legacy variant's kernel reports of a table: each rule of a small one; of a large one only number and size of
 * the rules.
 */
function withGlance(rules: FakeIptables, isLarge: boolean): IpvsPort["rules"] {
  return {
    family: rules.family,
    variant: rules.variant,
    restore: (payload) => rules.restore(payload),
    save: (table) => rules.save(table),
    saveTables: (tables) => rules.saveTables(tables),
    chains: (table) => rules.chains(table),
    list: (table, chain) => rules.list(table, chain),
    glance: async (table) => {
      const chains = [...rules.table(table).chains.values()];
      const texts = chains.flatMap(({ name, rules }) => [name, ...rules.map(renderRule)]);
      const size = texts.reduce((sum, { length }) => sum + length, 0);
      const state = isLarge ? `${texts.length} ${chains.length} ${size}` : texts.join("\n");
      return { state, entries: texts.length + chains.length };
    },
  };
}

function rulesOf(ruleSet: RuleSet): Rule[] {
  return [...ruleSet.values()].flatMap(({ chains }) => [...chains.values()].flatMap(({ rules }) => rules));
}

function names({ matches }: Rule, set: string): boolean {
  return matches.some((match) => match.kind === "set" && match.name === set);
}

/** Everything that ipvs mode programs, rules aside, in an order of its own: for comparing. */
export function objectsOf(node: FakeNode): string[] {
  return describeObjects(node.servers.servers(), node.links.device(DEVICE), node.sets.sets());
}

export function describeObjects(
  servers: readonly VirtualServerState[],
  addresses: Iterable<string> | undefined,
  sets: readonly SetState[],
): string[] {
  return [
    ...servers.flatMap(serverLines),
    ...(addresses === undefined ? ["no device"] : [...addresses].map((address) => `${DEVICE} ${address}`)),
    ...sets.flatMap(({ name, type, family, members }) => [
      `${name} ${type} ${family ?? ""}`.trim(),
      ...[...members].map((member) => `${name} ${member}`),
    ]),
  ].sort();
}

function serverLines(state: VirtualServerState): string[] {
  const { destinations, ...server } = state;
  return [
    renderServerCommand({ kind: "add-server", server }),
    ...destinations.map((destination) => renderServerCommand({ kind: "add-destination", server, destination })),
  ];
}

/** `-t 10.96.0.1:443` → its destinations with their weights, `10.144.0.1:8080 1`. */
export function weights(node: FakeNode): ReadonlyMap<string, readonly string[]> {
  return new Map(
    node.servers
      .servers()
      .map((server) => [
        renderServerKey(server),
        server.destinations.map(({ address, port, weight }) => `${address}:${port} ${weight}`).sort(),
      ]),
  );
}
