import { SetReader } from "@fairlead/netfilter";
import { read } from "../runner/read.ts";
import type { Runner } from "../runner/runner.ts";
import { lines } from "../runner/text.ts";
import type { IpsetClient } from "./client.ts";

/** Milliseconds one restore may take. */
const RESTORE_TIMEOUT = 600_000;

/** The client of ipset. */
export function createIpset(runner: Runner): IpsetClient {
  return {
    save: () => read(lines(runner.stream(["ipset", "save"])), new SetReader()),
    restore: async (input) => {
      await runner.run(["ipset", "-exist", "restore"], { input, timeoutMs: RESTORE_TIMEOUT });
    },
  };
}
