import { createHash } from "node:crypto";
import * as versions from "../../../kind/versions.ts";
import type { ProgramPaths, ProgramSet } from "../../control-plane/programs.ts";

/** Short and another one whenever what is pinned changes: a part of names in the cache. */
export function fingerprint(value: unknown): string {
  return createHash("sha256").update(JSON.stringify(value)).digest("hex").slice(0, 10);
}

type Programs = Readonly<Record<string, unknown>>;

function set<Name extends string>(name: string, programs: ProgramSet<Name>["programs"]): ProgramSet<Name> {
  return { programs, folder: (version) => `${name}-${version}-${fingerprint(programs satisfies Programs)}` };
}

export const cluster = set<keyof typeof versions.clusterPrograms>("kind", versions.clusterPrograms);
export const suite = set<keyof typeof versions.suitePrograms>("kind-suite", versions.suitePrograms);
export const published = set<keyof typeof versions.publishedPrograms>("kind-published", versions.publishedPrograms);
export const flannel = set<keyof typeof versions.FLANNEL_PROGRAMS>("kind-flannel", versions.FLANNEL_PROGRAMS);

export type ClusterPrograms = ProgramPaths<keyof typeof versions.clusterPrograms>;
