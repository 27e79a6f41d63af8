import type { AgentStart } from "../node.ts";
import type { Manifest } from "./manifest.ts";

const STATE_FOLDER = "/var/lib/fairlead";

interface Container {
  readonly name: string;
  readonly args: readonly string[];
}

interface Volume {
  readonly name: string;
  readonly configMap?: object;
}

/** What is read of a DaemonSet. */
interface DaemonSet extends Manifest {
  readonly spec: {
    readonly template: {
      readonly spec: { readonly containers: readonly Container[]; readonly volumes: readonly Volume[] };
    };
  };
}

/** Fairlead's DaemonSet with another ConfigMap, and with more flags for its agents. */
export function startedWith(manifest: Manifest, configMap: string, { memory, flags = [] }: AgentStart): Manifest {
  const daemonSet = manifest as DaemonSet;
  const { template } = daemonSet.spec;
  const { containers, volumes } = template.spec;
  const own = memory === undefined ? [] : [`--state-dir=${STATE_FOLDER}/${memory}`];
  const spec = {
    ...template.spec,
    // The last of a flag's name counts.
    containers: containers.map((one) => ({ ...one, args: [...one.args, ...own, ...flags] })),
    volumes: volumes.map((one) => (one.configMap === undefined ? one : { ...one, configMap: { name: configMap } })),
  };
  return { ...daemonSet, spec: { ...daemonSet.spec, template: { ...template, spec } } };
}
