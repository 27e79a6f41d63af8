import type { ClusterNode } from "@fairlead/lab/provider/cluster";
import type { Scene } from "../scene.ts";

interface OwnershipPage {
  readonly services: readonly OwnershipRow[];
  readonly networks?: { readonly cidrs: readonly LearnedRow[] };
}

interface OwnershipRow {
  readonly service: string;
  readonly ipFamily: string;
  readonly ownership: string;
  readonly ownEndpoints: number;
  readonly excludedEndpoints: number;
}

interface LearnedRow {
  readonly side: string;
  readonly cidr: string;
  readonly stage: string;
  readonly objects: readonly string[];
}

async function page({ agent }: ClusterNode): Promise<OwnershipPage> {
  return JSON.parse(await agent.get("/ownership"));
}

async function rowsOn({ namespace, family }: Scene, node: ClusterNode): Promise<ReadonlyMap<string, OwnershipRow>> {
  const { services } = await page(node);
  const own = services.filter(({ service, ipFamily }) => service.startsWith(`${namespace}/`) && ipFamily === family);
  return new Map(own.map((row) => [row.service.slice(namespace.length + 1), row]));
}

/** Waits until every agent has decided so. @param wanted a service of the spec → its owner */
export async function untilOwners(scene: Scene, wanted: Readonly<Record<string, string>>): Promise<void> {
  await untilRows(scene, "the owners", (rows) =>
    Object.entries(wanted).flatMap(([service, owner]) => {
      const { ownership = "unknown" } = rows.get(service) ?? {};
      return ownership === owner ? [] : [`${service} is ${ownership}, not ${owner}`];
    }),
  );
}

/** Waits until every agent knows so many endpoints of a service, on whichever side they are. */
export async function untilEndpoints(scene: Scene, service: string, count: number): Promise<void> {
  await untilRows(scene, `${count} endpoints of ${service}`, (rows) => {
    const { ownEndpoints = 0, excludedEndpoints = 0 } = rows.get(service) ?? {};
    return ownEndpoints + excludedEndpoints === count ? [] : [`${ownEndpoints} here, ${excludedEndpoints} there`];
  });
}

async function untilRows(
  scene: Scene,
  what: string,
  complaints: (rows: ReadonlyMap<string, OwnershipRow>) => readonly string[],
): Promise<void> {
  const { cluster, until } = scene;
  await until(`${what} on every node`, async () => {
    const nodes = await Promise.all(cluster.nodes.map((node) => rowsOn(scene, node)));
    const found = nodes.flatMap((rows, at) => complaints(rows).map((one) => `${cluster.nodes[at]?.name}: ${one}`));
    return found.length === 0 ? undefined : found.join("; ");
  });
}

/** Waits until all agents say the same of every service and of every learned CIDR: so it is outside of the delays. */
export async function untilAllAgree({ cluster, until }: Scene): Promise<void> {
  await until("the same decisions on every node", async () => {
    const pages = await Promise.all(cluster.nodes.map(page));
    const [first, ...others] = pages.map(decisionsOf);
    const different = others.filter((one) => one !== first);
    return different.length === 0 ? undefined : `${first}\nand\n${different.join("\n")}`;
  });
}

function decisionsOf({ services, networks }: OwnershipPage): string {
  const rows = services.map(({ service, ipFamily, ownership }) => [service, ipFamily, ownership].join(" "));
  const learned = (networks?.cidrs ?? []).map(({ side, cidr, stage, objects }) =>
    [side, cidr, stage, ...objects.toSorted()].join(" "),
  );
  return [...rows.sort(), ...learned.sort()].join("\n");
}

/** How often services have changed owners on each node since its agent started. */
export async function ownerChanges({ cluster }: Pick<Scene, "cluster">): Promise<readonly number[]> {
  return Promise.all(
    cluster.nodes.map(async ({ agent }) => {
      const values = (await agent.get("/metrics")).matchAll(/^fairlead_ownership_changes_total\{.*\} (\d+)$/gm);
      return Array.from(values, ([, value]) => Number(value)).reduce((sum, one) => sum + one, 0);
    }),
  );
}

/**
 * Runs something during which services change owners exactly so often on each node.
 *
 * @throws Error when they did so more or less often
 */
export async function withOwnerChanges(scene: Scene, count: number, act: () => Promise<void>): Promise<void> {
  const before = await ownerChanges(scene);
  await act();
  const after = await ownerChanges(scene);
  const changes = after.map((value, at) => value - (before[at] ?? 0));
  if (changes.some((one) => one !== count)) {
    throw new Error(`wanted ${count} changes of owner on each node; came ${changes.join(" and ")}`);
  }
}
