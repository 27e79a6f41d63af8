import type { ObjectSource } from "../change.ts";
import type { Clock } from "../clock.ts";
import type { OnReport } from "../report.ts";

export interface ManifestsSourceOptions {
  /** A YAML or JSON file, or a folder of them (*.yaml, *.yml, *.json; not its subfolders, no hidden files). */
  readonly path: string;
  /** The own Node's name; other Nodes are ignored. */
  readonly nodeName: string;
  readonly onReport?: OnReport;
  /** For tests. */
  readonly clock?: Clock;
}

/** Follows manifest files as if an API server held them. Does nothing before `run`. */
export function createManifestsSource(_options: ManifestsSourceOptions): ObjectSource {
  return { run: () => Promise.reject(new Error("not there yet")) };
}
