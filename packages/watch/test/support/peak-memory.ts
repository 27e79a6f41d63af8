// biome-ignore lint/style/noRestrictedImports: this package stands next to @fairlead/kernel and knows nothing of it
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { SourceReport } from "../../src/index.ts";
import { later } from "./fake-api.ts";

/** What a process of its own saw of a source until its first `synced`. */
export interface Followed {
  readonly services: readonly string[];
  readonly reports: readonly SourceReport[];
  /** Resident memory at most, beyond that before the source was run. */
  readonly mebibytes: number;
}

/**
 * Follows Services of an API server or a manifest folder in another process, for its memory to be measured.
 *
 * @param from base URL or path
 * @param until key of the Service that ends it, once all is synced
 * @param encoding what an API server is asked for
 */
export async function followElsewhere(
  from: string,
  until: string,
  encoding: "json" | "protobuf" = "json",
): Promise<Followed> {
  const script = fileURLToPath(new URL("./follow.ts", import.meta.url));
  const args = ["--conditions=@fairlead/source", script, from, until, encoding];
  const running = promisify(execFile)(process.execPath, args, { maxBuffer: 2 ** 26 });
  later(async () => void running.child.kill());
  const { stdout } = await running;
  return JSON.parse(stdout);
}
