import { posix } from "node:path";
import { type Fields, fieldsOf, itemsOf, textOf } from "@fairlead/core";

/** How kube-proxy's container is started, and from where it has its configuration. */
export interface KubeProxySetup {
  readonly image: string;
  /** Of the command line, without the program. */
  readonly flags: readonly string[];
  /** Beside `--config` and `--hostname-override`, which every installation has. */
  readonly otherFlags: readonly string[];
  /** The file that --config names: a key of a ConfigMap. */
  readonly config?: {
    readonly path: string;
    readonly folder: string;
    readonly configMap: string;
    readonly key: string;
  };
}

/** Reads kube-proxy's DaemonSet, straight from JSON. */
export function kubeProxySetup(daemonSet: unknown): KubeProxySetup {
  const pod = fieldsOf(fieldsOf(fieldsOf(fieldsOf(daemonSet)["spec"])["template"])["spec"]);
  const containers = itemsOf(pod["containers"]).map(fieldsOf);
  const container = containers.find(({ name }) => name === "kube-proxy") ?? containers[0] ?? {};
  const [, ...ownArguments] = textsOf(container["command"]);
  const flags = joined([...ownArguments, ...textsOf(container["args"])]);
  const path = flags.map((flag) => /^--config=(.*)$/.exec(flag)?.[1]).findLast((found) => found !== undefined);
  const config = path === undefined ? undefined : mounted(path, container, pod);
  return {
    image: textOf(container["image"]) ?? "",
    flags,
    otherFlags: flags.filter((flag) => !/^--(?:config|hostname-override)=/.test(flag)),
    ...(config === undefined ? {} : { config }),
  };
}

function textsOf(value: unknown): readonly string[] {
  return itemsOf(value).flatMap((one) => (typeof one === "string" ? [one] : []));
}

/** `--flag value` as `--flag=value`, of the flags that are looked for. */
function joined(flags: readonly string[]): readonly string[] {
  return flags.flatMap((flag, at) => {
    if (/^--(?:config|hostname-override)$/.test(flags[at - 1] ?? "")) return [];
    return /^--(?:config|hostname-override)$/.test(flag) ? [`${flag}=${flags[at + 1] ?? ""}`] : [flag];
  });
}

function mounted(path: string, container: Fields, pod: Fields): KubeProxySetup["config"] {
  const folder = posix.dirname(path);
  const mount = itemsOf(container["volumeMounts"])
    .map(fieldsOf)
    .find(({ mountPath }) => mountPath === folder);
  const volume = itemsOf(pod["volumes"])
    .map(fieldsOf)
    .find(({ name }) => mount !== undefined && name === mount["name"]);
  const configMap = textOf(fieldsOf(volume?.["configMap"])["name"]);
  if (configMap === undefined) return undefined;
  return { path, folder, configMap, key: posix.basename(path) };
}
