import { CommandError } from "../runner/command-error.ts";
import type { Runner } from "../runner/runner.ts";
import type { LinksClient } from "./client.ts";

/** Milliseconds one batch may take. */
const BATCH_TIMEOUT = 600_000;

/** Characters that a listing of a hundred thousand addresses stays below. */
const MAX_LISTING = 64 * 1024 * 1024;

/** The client of iproute2. */
export function createLinks(runner: Runner): LinksClient {
  return {
    addresses: (device) => addresses(runner, device),
    batch: async (input) => {
      await runner.run(["ip", "-batch", "-"], { input, timeoutMs: BATCH_TIMEOUT });
    },
  };
}

async function addresses(runner: Runner, device: string): Promise<ReadonlySet<string> | undefined> {
  try {
    const options = { maxStdout: MAX_LISTING };
    const { stdout } = await runner.run(["ip", "-oneline", "address", "show", "dev", device], options);
    return new Set(Array.from(stdout.matchAll(LOCAL), ([, address = ""]) => address));
  } catch (error) {
    if (error instanceof CommandError && error.stderr.includes("does not exist")) return undefined;
    throw error;
  }
}

/** `3: kube-ipvs0    inet 10.96.0.1/32 scope global kube-ipvs0\       valid_lft forever …` */
const LOCAL = /^\d+: \S+ +inet6? ([0-9a-f.:]+)/gm;
