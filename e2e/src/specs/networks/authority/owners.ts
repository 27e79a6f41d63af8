import { make, subnet } from "../learning.ts";
import { CIDR } from "../open-others.ts";
import { type Bystanders, CANARY } from "./bystanders.ts";

interface OwnershipPage {
  readonly services: readonly {
    readonly service: string;
    readonly ipFamily: string;
    readonly ownership: string;
    readonly why: string;
  }[];
}

/** The owner of each service as every agent reports it now, in IPv4. */
async function pages({ scene }: Bystanders): Promise<readonly OwnershipPage["services"][]> {
  return Promise.all(
    scene.cluster.nodes.map(async ({ agent }) => {
      const { services }: OwnershipPage = JSON.parse(await agent.get("/ownership"));
      return services.filter(({ ipFamily }) => ipFamily === "IPv4");
    }),
  );
}

/**
 * Waits until every agent decided whose the canary is, which takes in all that came before, and looks at the others in
 * the same answer.
 *
 * @throws Error when a bystander has another owner
 */
export async function expectOwners(at: Bystanders, canary: "ours" | "foreign"): Promise<void> {
  const key = `${at.scene.namespace}/${CANARY}`;
  await at.scene.until(`the canary to be ${canary} on every node`, async () => {
    const nodes = await pages(at);
    const moved = nodes.flatMap((services) => movedIn(at, services));
    if (moved.length > 0) throw new Error(`wanted no service to change hands; ${moved.join("; ")}`);
    const owners = nodes.map((services) => services.find(({ service }) => service === key)?.ownership ?? "unknown");
    return owners.every((owner) => owner === canary) ? undefined : owners.join(", ");
  });
}

/** Waits until they have their owners at first. */
export async function untilOwned(at: Bystanders): Promise<void> {
  await at.scene.until("each service to have its owner on every node", async () => {
    const moved = (await pages(at)).flatMap((services) => movedIn(at, services));
    return moved.length === 0 ? undefined : moved.join("; ");
  });
}

function movedIn({ owners }: Bystanders, services: OwnershipPage["services"]): readonly string[] {
  return Object.entries(owners).flatMap(([key, wanted]) => {
    const found = services.find(({ service }) => service === key);
    return found?.ownership === wanted ? [] : [`${key} is ${found?.ownership}, not ${wanted}: ${found?.why}`];
  });
}

/** Defines the canary's network. @returns what takes it back */
export function canaryGoes({ scene }: Bystanders): Promise<() => Promise<void>> {
  return make(scene, subnet(CANARY, CIDR));
}
