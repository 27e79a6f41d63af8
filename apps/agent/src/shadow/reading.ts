import type { IPFamily } from "@fairlead/core";
import { type View, viewOf } from "@fairlead/inspect";
import type { KernelReader } from "@fairlead/kernel";
import { hostOf } from "./host.ts";
import type { SeenMode } from "./modes.ts";

/** What a family's rules were at one time. */
export interface Reading {
  readonly view: View;
  readonly nodeAddress: string | undefined;
}

interface ReadFrom {
  readonly family: IPFamily;
  readonly mode: SeenMode;
  readonly kernel: KernelReader;
}

/** How often it begins anew since another program wrote meanwhile. */
const MOST_TRIES = 3;

/**
 * Reads the kernel, again where that fails since another program wrote meanwhile: what a transaction takes away is
 * missing then.
 *
 * @param generation of the kernel when it begins; undefined: it has none
 * @throws whatever reading ends with
 */
export async function readKernel(from: ReadFrom, generation: number | undefined): Promise<Reading> {
  let before = generation;
  for (let tries = 1; ; tries++) {
    try {
      return await readOnce(from);
    } catch (error) {
      const now = await from.mode.generation(from.kernel);
      if (now === before || tries === MOST_TRIES) throw error;
      before = now;
    }
  }
}

async function readOnce({ mode, kernel, family }: ReadFrom): Promise<Reading> {
  const { environment, nodeAddress } = await hostOf(kernel, family);
  return { view: viewOf(await mode.read(kernel, family, environment)), nodeAddress };
}
