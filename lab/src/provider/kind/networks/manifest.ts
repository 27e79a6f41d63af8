import type { IPFamily } from "@fairlead/core";

/** An object of a pod network's manifest; only what is looked at has a type. */
export interface NetworkObject {
  readonly kind: string;
  readonly data?: Readonly<Record<string, string>>;
  readonly spec?: { readonly template?: { readonly spec: NetworkPod } };
}

interface NetworkPod {
  readonly containers: readonly NetworkContainer[];
  readonly initContainers?: readonly NetworkContainer[];
  readonly volumes?: readonly { readonly hostPath?: { readonly path: string } }[];
}

interface NetworkContainer {
  readonly name: string;
  readonly image: string;
  readonly env?: readonly { readonly name: string; readonly value?: string }[];
}

/** What a cluster's own values are. */
export interface NetworkSettings {
  readonly podCIDRs: Readonly<Partial<Record<IPFamily, string>>>;
  readonly families: readonly IPFamily[];
  /** Where containerd looks for the network's configuration. */
  readonly configFolder: string;
  /** The API server's own address: its Service address works when Fairlead does. */
  readonly apiServer: { readonly host: string; readonly port: number };
}

/** Container → variables that it gets, in place of what the manifest says of them. */
export type Variables = Readonly<Record<string, Readonly<Record<string, string>>>>;

const CONFIG_FOLDER = "/etc/cni/net.d";
const FLANNEL = "net-conf.json";

/** What a cluster's own values make of the objects of a manifest. */
export function settled(
  objects: readonly NetworkObject[],
  settings: NetworkSettings,
  variables: Variables = {},
): readonly NetworkObject[] {
  return objects.map((object) => {
    const { data, spec } = object;
    const network = data?.[FLANNEL];
    if (network !== undefined) return { ...object, data: { ...data, [FLANNEL]: flannelNetwork(network, settings) } };
    if (spec?.template === undefined || object.kind !== "DaemonSet") return object;
    const pod = settledPod(spec.template.spec, settings, variables);
    return { ...object, spec: { ...spec, template: { ...spec.template, spec: pod } } };
  });
}

function settledPod(pod: NetworkPod, { apiServer, configFolder }: NetworkSettings, variables: Variables): NetworkPod {
  const { host, port } = apiServer;
  const everywhere = { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: String(port) };
  const withVariables = (one: NetworkContainer) => {
    const wanted = new Map(Object.entries({ ...everywhere, ...variables[one.name] }));
    const others = (one.env ?? []).filter(({ name }) => !wanted.has(name));
    return { ...one, env: [...others, ...[...wanted].map(([name, value]) => ({ name, value }))] };
  };
  const { containers, initContainers = [], volumes = [] } = pod;
  return {
    ...pod,
    containers: containers.map(withVariables),
    initContainers: initContainers.map(withVariables),
    volumes: volumes.map((volume) => {
      const { hostPath } = volume;
      return hostPath?.path === CONFIG_FOLDER ? { ...volume, hostPath: { ...hostPath, path: configFolder } } : volume;
    }),
  };
}

function flannelNetwork(text: string, { podCIDRs, families }: NetworkSettings): string {
  const ipv6 = families.includes("IPv6") ? { EnableIPv6: true, IPv6Network: podCIDRs.IPv6 } : {};
  return JSON.stringify({ ...JSON.parse(text), Network: podCIDRs.IPv4, ...ipv6 });
}

/** The images that objects name, each once. */
export function imagesOf(objects: readonly NetworkObject[]): readonly string[] {
  const pods = objects.flatMap(({ spec }) => (spec?.template === undefined ? [] : [spec.template.spec]));
  const containers = pods.flatMap(({ containers, initContainers = [] }) => [...containers, ...initContainers]);
  return [...new Set(containers.map(({ image }) => image))];
}
