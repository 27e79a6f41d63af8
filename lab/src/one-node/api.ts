import { fileURLToPath } from "node:url";
import type { NetworkNamespace } from "@fairlead/kernel/netns";
import type { RawObject } from "@fairlead/testkit";
import { startScript } from "../support/script.ts";
import { FROM_SOURCES } from "../support/spawn-script.ts";

/** An API server for the proxies of one namespace. */
export interface NamespaceApi {
  readonly url: string;
  put(objects: readonly RawObject[]): Promise<void>;
  remove(objects: readonly RawObject[]): Promise<void>;
  stop(): Promise<void>;
}

/** A line that `api-main.ts` takes. */
export interface ApiChanges {
  readonly put?: readonly RawObject[];
  readonly remove?: readonly RawObject[];
}

const SCRIPT = fileURLToPath(new URL("api-main.ts", import.meta.url));

/** Starts it with these objects. */
export async function startApi(namespace: NetworkNamespace, objects: readonly RawObject[]): Promise<NamespaceApi> {
  const script = await startScript(namespace, SCRIPT, [], FROM_SOURCES);
  const change = async (changes: ApiChanges) => void (await script.ask(JSON.stringify(changes)));
  const put = (more: readonly RawObject[]) => change({ put: more });
  await put(objects);
  return { url: script.ready, put, remove: (gone) => change({ remove: gone }), stop: script.stop };
}
