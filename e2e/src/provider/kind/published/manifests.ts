import type { IPFamily } from "@fairlead/core";

/** A manifest of somebody else's; only what is looked at has a type. */
export interface PublishedObject {
  readonly kind: string;
  readonly data?: Readonly<Record<string, string>>;
  readonly spec?: {
    readonly template?: {
      readonly spec: {
        readonly containers: readonly PublishedContainer[];
        readonly initContainers?: readonly PublishedContainer[];
        readonly volumes?: readonly { readonly hostPath?: { readonly path: string } }[];
      };
    };
  };
}

interface PublishedContainer {
  readonly name: string;
  readonly image: string;
  readonly env?: readonly { readonly name: string; readonly value?: string }[];
}

export interface PublishedSettings {
  readonly podCIDRs: Readonly<Partial<Record<IPFamily, string>>>;
  readonly serviceCIDRs: Readonly<Partial<Record<IPFamily, string>>>;
  readonly families: readonly IPFamily[];
  /** Where containerd looks for the network's configuration. */
  readonly configFolder: string;
  /** The API server's own address: its Service address works when Fairlead does. */
  readonly apiServer: { readonly host: string; readonly port: number };
}

/** Container → variables that it gets, in place of what the manifest says of them. */
type Variables = Readonly<Record<string, Readonly<Record<string, string>>>>;

const CONFIG_FOLDER = "/etc/cni/net.d";

/** What a cluster's own values make of the objects of flannel's or Calico's manifest. */
export function settled(
  objects: readonly PublishedObject[],
  settings: PublishedSettings,
  variables: Variables,
): readonly PublishedObject[] {
  const { host, port } = settings.apiServer;
  const everywhere = { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: String(port) };
  const contained = (one: PublishedContainer) => {
    const wanted = { ...everywhere, ...variables[one.name] };
    const others = (one.env ?? []).filter(({ name }) => wanted[name as keyof typeof wanted] === undefined);
    return { ...one, env: [...others, ...Object.entries(wanted).map(([name, value]) => ({ name, value }))] };
  };
  return objects.map((object) => {
    const { data, spec } = object;
    if (data?.["net-conf.json"] !== undefined) {
      return { ...object, data: { ...data, "net-conf.json": flannelNetwork(data["net-conf.json"], settings) } };
    }
    const pod = spec?.template?.spec;
    if (pod === undefined || object.kind !== "DaemonSet") return object;
    const volumes = pod.volumes?.map((volume) =>
      volume.hostPath?.path === CONFIG_FOLDER
        ? { ...volume, hostPath: { ...volume.hostPath, path: settings.configFolder } }
        : volume,
    );
    const containers = pod.containers.map(contained);
    const initContainers = pod.initContainers?.map(contained) ?? [];
    const template = { ...spec?.template, spec: { ...pod, containers, initContainers, ...(volumes && { volumes }) } };
    return { ...object, spec: { ...spec, template } };
  });
}

function flannelNetwork(text: string, { podCIDRs, families }: PublishedSettings): string {
  const ipv6 = families.includes("IPv6") ? { EnableIPv6: true, IPv6Network: podCIDRs.IPv6 } : {};
  return JSON.stringify({ ...JSON.parse(text), Network: podCIDRs.IPv4, ...ipv6 });
}

/** What Calico's manifest finds out by itself, or has tunnels for. */
export function calicoVariables({ podCIDRs }: PublishedSettings): Variables {
  const pool = {
    CALICO_IPV4POOL_CIDR: podCIDRs.IPv4 ?? "",
    CALICO_IPV4POOL_IPIP: "Never",
    CALICO_IPV4POOL_VXLAN: "Never",
  };
  return { "calico-node": pool };
}

/**
 * kube-ovn's script sets its variables at its beginning, a line each.
 *
 * @throws Error when one of them is not there any more
 */
export function kubeOvnScript(script: string, settings: PublishedSettings): string {
  const { podCIDRs, serviceCIDRs, families, configFolder } = settings;
  const all = (cidrs: PublishedSettings["podCIDRs"]) => families.map((family) => cidrs[family]).join(",");
  const gateways = families.map((family) => (podCIDRs[family] ?? "").replace(/0\/16$/, "1").replace(/\/48$/, "1"));
  const values = {
    POD_CIDR: all(podCIDRs),
    POD_GATEWAY: gateways.join(","),
    SVC_CIDR: all(serviceCIDRs),
    CNI_CONF_DIR: configFolder,
  };
  return Object.entries(values).reduce((text, [name, value]) => {
    // The first is the default, others follow in branches for IPv6 that are not taken.
    const line = new RegExp(`^( *)${name}=.*$`, "gm");
    if (!line.test(text)) throw new Error(`kube-ovn's script has no ${name} any more`);
    return text.replace(line, `$1${name}="${value}"`);
  }, script);
}

/** The images that objects name, each once. */
export function imagesOf(objects: readonly PublishedObject[]): readonly string[] {
  const pods = objects.flatMap(({ spec }) => (spec?.template === undefined ? [] : [spec.template.spec]));
  const containers = pods.flatMap(({ containers, initContainers = [] }) => [...containers, ...initContainers]);
  return [...new Set(containers.map(({ image }) => image))];
}
