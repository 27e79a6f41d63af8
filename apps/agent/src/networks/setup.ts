import { readFile } from "node:fs/promises";
import { errorChainText, errorCode } from "@fairlead/base";
import type { AgentConfig } from "@fairlead/config";
import type { FilterOptions } from "@fairlead/endpoint-filter";
import { type NetworksSetup, networksSettings } from "@fairlead/intake";
import { type LastKnown, NOTHING_KNOWN, parseLastKnown } from "@fairlead/networks";
import type { Log } from "../log/log.ts";
import { readStateFile, stateFile } from "../ownership/state-file.ts";

/** Undefined: no network is learned. */
export async function setUpNetworks(
  config: AgentConfig,
  filter: FilterOptions,
  log: Log,
): Promise<NetworksSetup | undefined> {
  const settings = networksSettings(config, filter, await podNamespace());
  if (settings === undefined) return undefined;
  return { settings, known: await loadKnown(stateFile(config.stateDir, "networks"), log) };
}

/** Where a pod finds the namespace that it runs in. */
const NAMESPACE_FILE = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";

/** Undefined: this is no pod, or its service account is not mounted. */
async function podNamespace(): Promise<string | undefined> {
  try {
    return (await readFile(NAMESPACE_FILE, "utf8")).trim() || undefined;
  } catch {
    return undefined;
  }
}

/** Whatever is wrong with the file: nothing is known, and one line. */
async function loadKnown(path: string | undefined, log: Log): Promise<LastKnown> {
  if (path === undefined) return NOTHING_KNOWN;
  try {
    const { known, reason } = parseLastKnown(await readStateFile(path));
    if (reason !== undefined)
      log.warn("Cannot use the last known networks; starting without them", { file: path, reason });
    return known;
  } catch (error) {
    const missing = errorCode(error) === "ENOENT";
    if (!missing)
      log.warn("Cannot use the last known networks; starting without them", {
        file: path,
        reason: errorChainText(error),
      });
    return NOTHING_KNOWN;
  }
}
