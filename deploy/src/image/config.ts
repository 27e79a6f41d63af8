import { INSPECTOR_OPTION } from "@fairlead/tooling/agent-node";
import { AGENT_NAMES } from "./agent-layer.ts";
import type { Arch } from "./arch.ts";
import type { Layer } from "./layer.ts";

export interface ImageFacts {
  readonly arch: Arch;
  readonly version: string;
  /** Commit that it was built from, when known. */
  readonly revision?: string;
  /** Seconds since the epoch. */
  readonly epoch: number;
}

/**
 * Where Node looks for compiled code. Only the Dockerfile, which can run the agent, puts some there: V8 does not write
 * the same bytes twice, and an image from packages is the same bytes each time.
 */
export const COMPILED_CODE = "/usr/local/lib/fairlead/compiled";

/** The programs' interpreter lines have Node's option as well, for pods that set NODE_OPTIONS. */
export const ENVIRONMENT: readonly string[] = [
  "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
  "MALLOC_ARENA_MAX=1",
  `NODE_OPTIONS=${INSPECTOR_OPTION}`,
  `NODE_COMPILE_CACHE=${COMPILED_CODE}`,
];

/** Configuration of an image (OCI image specification 1.1), as the Dockerfile describes it. */
export function imageConfig(facts: ImageFacts, layers: readonly Pick<Layer, "diffId" | "createdBy">[]) {
  const created = new Date(facts.epoch * 1000).toISOString();
  return {
    architecture: facts.arch,
    os: "linux",
    created,
    config: {
      User: "0",
      WorkingDir: "/",
      Env: ENVIRONMENT,
      Entrypoint: [AGENT_NAMES[0]],
      Labels: labels(facts, created),
    },
    rootfs: { type: "layers", diff_ids: layers.map(({ diffId }) => diffId) },
    history: layers.map(({ createdBy }) => ({ created, created_by: createdBy })),
  };
}

function labels({ version, revision }: ImageFacts, created: string): Record<string, string> {
  return {
    "org.opencontainers.image.created": created,
    "org.opencontainers.image.title": "Fairlead",
    "org.opencontainers.image.description": "Kubernetes service proxy for clusters with more than one pod network",
    "org.opencontainers.image.source": "https://github.com/fairlead-dev/fairlead",
    "org.opencontainers.image.licenses": "Apache-2.0",
    "org.opencontainers.image.version": version,
    ...(revision === undefined ? {} : { "org.opencontainers.image.revision": revision }),
  };
}
