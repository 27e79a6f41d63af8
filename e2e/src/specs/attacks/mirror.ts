import { mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { folderPrefix } from "@fairlead/lab/support/run-inventory";
import type { Scene } from "../scene.ts";
import { until } from "../until.ts";

/** A folder of manifests that has what the API server has, and what an attacker adds. */
export interface Mirror {
  readonly folder: string;
  /** Brings it up to date, as soon as the API server has EndpointSlices with these addresses. */
  update(addresses?: readonly string[]): Promise<void>;
  /** Writes a file, in one step. */
  add(name: string, pieces: Iterable<string>): Promise<void>;
  drop(name: string): Promise<void>;
}

const SERVICES = "/api/v1/services";
const SLICES = "/apis/discovery.k8s.io/v1/endpointslices";

/** Goes with the spec. */
export async function openMirror({ cluster: { api }, later }: Scene): Promise<Mirror> {
  const folder = await mkdtemp(join(tmpdir(), `${folderPrefix}-`));
  later(() => rm(folder, { recursive: true, force: true }));
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
