import { createIpvsBackend, DEVICE, ipvsSemantics } from "@fairlead/backend-ipvs";
import { socketText } from "@fairlead/base";
import type { IPFamily } from "@fairlead/core";
import type { Lab } from "@fairlead/lab/plain/lab";
import { PlannedCluster, type RawObject, STANDARD_OPTIONS } from "@fairlead/testkit";
import { filterFor } from "../cases/conformance/groups.ts";
import { ipvsPorts } from "../cases/conformance/programmed.ts";

export interface Report {
  readonly name: string;
  /** Empty where all is well. */
  readonly problems: readonly string[];
}

/** Specs that run in the guest, one suite after the other on one test ground. Their names are known outside. */
export interface Suite {
  readonly names: readonly string[];
  run(lab: Lab): AsyncIterable<Report>;
}

/** One question with a ground of its own. Throws, or gives what is wrong. */
export interface Spec {
  readonly name: string;
  run(lab: Lab): Promise<readonly string[]>;
}

/** Runs the specs one by one; after each the ground is tidied. */
export function suiteOf(specs: readonly Spec[], tidy: (lab: Lab) => Promise<void>): Suite {
  return {
    names: specs.map(({ name }) => name),
    run: async function* (lab) {
      for (const { name, run } of specs) {
        yield { name, problems: await problemsOf(run(lab)) };
        await tidy(lab);
      }
    },
  };
}

export async function problemsOf(work: Promise<readonly string[]>): Promise<readonly string[]> {
  try {
    return await work;
  } catch (error) {
    return [error instanceof Error ? (error.stack ?? error.message) : String(error)];
  }
}

export function unequal(what: string, seen: unknown, wanted: unknown): string[] {
  const [first, second] = [JSON.stringify(seen), JSON.stringify(wanted)];
  return first === second ? [] : [`${what}: ${first} instead of ${second}`];
}

/** node-a as an agent in ipvs mode keeps it, one family only, with time that passes when the suite says so. */
export interface ServedNode {
  /** Takes in the next state of the cluster, which is complete. */
  change(objects: readonly RawObject[]): Promise<void>;
  /** What the agent does every syncPeriod. Gives whether there was anything to repair. */
  repair(): Promise<boolean>;
  /** Lets a minute pass and looks after what drains. */
  minute(): Promise<void>;
  /** The agent goes and another one comes: all that it remembers is in the kernel. */
  restart(): Promise<void>;
  /** The destinations of a virtual server with their weights, `10.144.1.5:8080 1`. */
  destinations(address: string): Promise<readonly string[]>;
  addresses(): Promise<ReadonlySet<string>>;
  cleanup(): Promise<void>;
}

interface ServedAs {
  /** Default IPv4. */
  readonly family?: IPFamily;
  readonly resetStaleTCP?: boolean;
}

export async function serveNode(
  lab: Lab,
  first: readonly RawObject[],
  { family = "IPv4", resetStaleTCP = false }: ServedAs = {},
): Promise<ServedNode> {
  const port = (await ipvsPorts(lab)).find(({ rules }) => rules.family === family);
  if (port === undefined) throw new Error("no family to program");
  let now = 0;
  const start = () => createIpvsBackend(port, { clock: { monotonic: () => now } });
  let backend = start();
  const filter = filterFor(STANDARD_OPTIONS);
  const options = { ...STANDARD_OPTIONS, resetStaleTCP };
  const cluster = new PlannedCluster({ options, semantics: ipvsSemantics, filter });
  const plan = () => cluster.plan(family);
  const node: ServedNode = {
    change: async (objects) => {
      const change = cluster.advance(objects).changes.get(family);
      if (change !== undefined) await backend.apply(plan(), change);
    },
    repair: async () => {
      if ((await backend.difference(plan())) === undefined) return false;
      await backend.sync(plan());
      return true;
    },
    minute: async () => {
      now += 60_000;
      await backend.maintain();
    },
    restart: async () => {
      backend = start();
      await backend.sync(plan());
    },
    destinations: async (address) => {
      for await (const server of port.servers.save()) {
        if (server.address !== address) continue;
        return server.destinations.map((entry) => `${socketText(entry.address, entry.port)} ${entry.weight}`).sort();
      }
      return [];
    },
    addresses: async () => (await port.links.addresses(DEVICE)) ?? new Set(),
    cleanup: () => backend.cleanup(),
  };
  await node.change(first);
  return node;
}
