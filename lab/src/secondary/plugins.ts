import { missingPrograms, type ProgramPaths, type ProgramSet, providePrograms } from "../control-plane/program-set.ts";
import { DEFAULT_KUBERNETES } from "../control-plane/versions.ts";

type Plugin = "bridge" | "macvlan" | "host-local";

const MODULE = { path: "github.com/containernetworking/plugins", version: "v1.9.1" } as const;

/** The reference plugins, as nodes have them in /opt/cni/bin. */
const plugins: ProgramSet<Plugin> = {
  programs: {
    bridge: { package: `${MODULE.path}/plugins/main/bridge`, module: MODULE },
    macvlan: { package: `${MODULE.path}/plugins/main/macvlan`, module: MODULE },
    "host-local": { package: `${MODULE.path}/plugins/ipam/host-local`, module: MODULE },
  },
  folder: () => `cni-plugins-${MODULE.version}`,
};

/** Why they are not to be had on this machine; undefined: they are, built if need be. */
export function missingPlugins(): Promise<string | undefined> {
  return missingPrograms(plugins, DEFAULT_KUBERNETES);
}

/** Finds them, building what is absent: a minute the first time, cached from then on. */
export function cniPlugins(): Promise<ProgramPaths<Plugin>> {
  return providePrograms(plugins, DEFAULT_KUBERNETES, () => {});
}
