import { posix } from "node:path";
import { fieldsOf, itemsOf, type RawObject, stringOf } from "@fairlead/base";
import { podSpecOf } from "../cluster/pod-spec.ts";

/** How kube-proxy's container is started, and from where it has its configuration. */
export interface KubeProxySetup {
  readonly image: string;
  /** Of the command line, without the program. */
  readonly flags: readonly string[];
  /** In addition to `--config` and `--hostname-override`, which every installation has. */
  readonly otherFlags: readonly string[];
  /** The ConfigMaps that its container has as folders. */
  readonly mounts: readonly { readonly folder: string; readonly configMap: string }[];
  /** The file that --config names; absent: it is in none of them. */
  readonly config?: MountedFile;
}

/** A file of a container: a key of a ConfigMap. */
export interface MountedFile {
  readonly path: string;
  readonly folder: string;
  readonly configMap: string;
  readonly key: string;
}

/** Whether a DaemonSet, straight from JSON, looks like kube-proxy's for Linux: by its program or its image. */
export function isKubeProxy(daemonSet: unknown): boolean {
  const pod = podSpecOf(daemonSet);
  const system = fieldsOf(pod["nodeSelector"])["kubernetes.io/os"] ?? "linux";
  const containers = itemsOf(pod["containers"]).map(fieldsOf);
  return (
    system === "linux" &&
    containers.some(({ image, command }) => {
      const [program = ""] = textsOf(command);
      return posix.basename(program) === "kube-proxy" || /(?:^|\/)kube-proxy(?:[:@]|$)/.test(stringOf(image) ?? "");
    })
  );
}

/** Reads kube-proxy's DaemonSet, straight from JSON. */
export function kubeProxySetup(daemonSet: unknown): KubeProxySetup {
  const pod = podSpecOf(daemonSet);
  const containers = itemsOf(pod["containers"]).map(fieldsOf);
  const container = containers.find(({ name }) => name === "kube-proxy") ?? containers[0] ?? {};
  const [, ...ownArguments] = textsOf(container["command"]);
  const flags = joined([...ownArguments, ...textsOf(container["args"])]);
  const path = flags.map((flag) => /^--config=(.*)$/.exec(flag)?.[1]).findLast((found) => found !== undefined);
  const mounts = mountsOf(container, pod);
  const config = path === undefined ? undefined : mountedFile(path, mounts);
  return {
    image: stringOf(container["image"]) ?? "",
    flags,
    otherFlags: flags.filter((flag) => !/^--(?:config|hostname-override)=/.test(flag)),
    mounts,
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

function mountsOf(container: RawObject, pod: RawObject): KubeProxySetup["mounts"] {
  const volumes = itemsOf(pod["volumes"]).map(fieldsOf);
  return itemsOf(container["volumeMounts"])
    .map(fieldsOf)
    .flatMap(({ mountPath, name: wanted }) => {
      const volume = volumes.find(({ name }) => name === wanted);
      const configMap = stringOf(fieldsOf(volume?.["configMap"])["name"]);
      const folder = stringOf(mountPath)?.replace(/(?<=.)\/+$/, "");
      return folder === undefined || configMap === undefined ? [] : [{ folder, configMap }];
    });
}

/** Undefined: it is in no ConfigMap. */
export function mountedFile(path: string, mounts: KubeProxySetup["mounts"]): MountedFile | undefined {
  const mount = mounts.find(({ folder }) => folder === posix.dirname(path));
  return mount && { path, ...mount, key: posix.basename(path) };
}
