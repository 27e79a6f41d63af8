/** Users who write files of manifests, or objects in them. */

import { rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { endpointSlice, service } from "@fairlead/testkit";
import { until } from "../expect.ts";
import type { Figures, Scene, Spec } from "../spec.ts";
import { type Attack, type Attacked, underAttack } from "./under-attack.ts";

const PORTS = [{ port: 80 }];
const fields = { namespace: "large", ports: PORTS } as const;

interface ManifestAttack extends Omit<Attack, "start" | "carry" | "act"> {
  /** Before the agent starts. */
  readonly before?: (mirror: Mirror, attacked: Attacked) => Promise<void>;
  readonly act: (attacked: Attacked, mirror: Mirror) => Promise<Figures>;
}

/** An attack on an agent that follows a folder of manifests, which has the cluster's objects all the while. */
export function underAttackFromManifests({ before = async () => {}, act, ...fields }: ManifestAttack): Spec {
  const mirrors = new WeakMap<object, Mirror>();
  const mirrorOf = async ({ scene }: Attacked) => {
    const mirror = mirrors.get(scene) ?? (await openMirror(scene));
    mirrors.set(scene, mirror);
    return mirror;
  };
  return underAttack({
    ...fields,
    start: async (attacked) => {
      const mirror = await mirrorOf(attacked);
      await before(mirror, attacked);
      return { flags: [`--manifests=${mirror.folder}`] };
    },
    carry: async (attacked, addresses) => (await mirrorOf(attacked)).update(addresses),
    act: async (attacked) => act(attacked, await mirrorOf(attacked)),
  });
}

/** A folder of manifests that has what the API server has, and what an attacker adds. */
export interface Mirror {
  readonly folder: string;
  /** Brings it up to date, as soon as the API server has EndpointSlices with these addresses. */
  update(addresses?: readonly string[]): Promise<void>;
  /** Writes a file, in one step. */
  add(name: string, pieces: Iterable<string>): Promise<void>;
  drop(name: string): Promise<void>;
}

/** The end of a hang: how long so many rules take is the machine's affair, what they cost is not. */
const SERVED_MS = 600_000;
/** Processor time of the agent and its tools; 100,000 endpoints took 71 s of it in iptables mode. */
const MOST_SECONDS = 180;

const ENDPOINTS = 100_000;

/** The rules of 100,000 endpoints are text of 40 MB, and what is known of each stays. */
const MOST_MIB = 1_024;

export const manyEndpoints: Spec = underAttackFromManifests({
  name: `attack: ${ENDPOINTS.toLocaleString("en")} endpoints in one service`,
  mostMiB: MOST_MIB,
  mostSeconds: MOST_SECONDS,
  // It says so when no step of a sync ends within 2 × syncPeriod, by the clock: one with so many rules may take longer.
  mayBeUnwell: true,
  unfit: (_, family) => (family === "IPv4" ? undefined : "has IPv4 endpoints"),
  act: async (attacked, mirror) => {
    await mirror.add("large.json", objects());
    const meanwhile = await attacked.change("meanwhile", SERVED_MS);
    const again = await attacked.change("again", SERVED_MS);
    await mirror.drop("large.json");
    return { meanwhile, again };
  },
});

const SERVICES = "/api/v1/services";
const SLICES = "/apis/discovery.k8s.io/v1/endpointslices";

/** Goes with the spec. */
async function openMirror(scene: Scene): Promise<Mirror> {
  const { api } = scene.cluster;
  const folder = await scene.folder();
  const add = async (name: string, pieces: Iterable<string>) => {
    const unseen = join(folder, `.${name}`);
    await writeFile(unseen, pieces);
    await rename(unseen, join(folder, name));
  };
  return {
    folder,
    add,
    update: async (addresses = []) => {
      let slices = "";
      await until(`EndpointSlices with ${addresses}`, async () => {
        slices = JSON.stringify(await api.get(SLICES));
        return addresses.find((address) => !slices.includes(`"${address}"`));
      });
      await add("endpointslices.json", [slices]);
      await add("services.json", [JSON.stringify(await api.get(SERVICES))]);
    },
    drop: (name) => rm(join(folder, name)),
  };
}

const IN_A_SLICE = 1_000;

function* objects() {
  const large = service("large", { ...fields, clusterIPs: ["10.100.255.1"] });
  yield `{"apiVersion":"v1","kind":"List","items":[${JSON.stringify(large)}`;
  for (let from = 0; from < ENDPOINTS; from += IN_A_SLICE) {
    const endpoints = Array.from({ length: IN_A_SLICE }, (_, at) => ({ address: addressOf(from + at) }));
    yield `,${JSON.stringify(endpointSlice(`large-${from}`, { ...fields, service: "large", family: "IPv4", endpoints }))}`;
  }
  yield "]}";
}

function addressOf(index: number): string {
  return `10.${160 + (index >> 16)}.${(index >> 8) & 255}.${index & 255}`;
}
