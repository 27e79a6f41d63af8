import type { IPFamily } from "@fairlead/core";
import { type ApiClient, type ApiObject, objectPath } from "@fairlead/lab/control-plane/api-client";

/** `spec` of a core/v1 Service, as far as a spec wants to say it. */
export type ServiceSpec = Readonly<Record<string, unknown>>;

/** A Service that exists. */
export interface ServiceHandle {
  readonly name: string;
  /** Of the first family. */
  readonly clusterIP: string;
  readonly clusterIPs: readonly string[];
  /** Of the first port, as the API server chose it. */
  readonly nodePort: number;
  readonly healthCheckNodePort: number;
  patch(patch: unknown): Promise<void>;
  /** Null removes it. */
  annotate(name: string, value: string | null): Promise<void>;
  /** What a load balancer's controller would set. */
  setIngress(addresses: readonly string[]): Promise<void>;
  remove(): Promise<void>;
}

export interface NewService {
  readonly name: string;
  readonly namespace: string;
  readonly family: IPFamily;
  readonly spec: ServiceSpec;
  readonly annotations: Readonly<Record<string, string>>;
  readonly labels?: Readonly<Record<string, string>>;
}

export async function createService(api: ApiClient, wanted: NewService): Promise<ServiceHandle> {
  const { name, namespace, family, spec, annotations, labels = {} } = wanted;
  const single = { ipFamilies: [family], ipFamilyPolicy: "SingleStack" };
  const metadata = { name, namespace, annotations, labels };
  const families = "ipFamilyPolicy" in spec ? {} : single;
  const created = await api.create({ apiVersion: "v1", kind: "Service", metadata, spec: { ...families, ...spec } });
  return handle(api, created);
}

function handle(api: ApiClient, created: ApiObject): ServiceHandle {
  const path = objectPath({ apiVersion: "v1", kind: "Service", metadata: created.metadata });
  const spec = read(created["spec"]);
  const clusterIPs = spec.clusterIPs ?? [];
  const patch = async (change: unknown) => void (await api.patch(path, change));
  return {
    name: created.metadata.name,
    clusterIP: clusterIPs[0] ?? "",
    clusterIPs,
    nodePort: spec.ports?.[0]?.nodePort ?? 0,
    healthCheckNodePort: spec.healthCheckNodePort ?? 0,
    patch,
    annotate: (name, value) => patch({ metadata: { annotations: { [name]: value } } }),
    setIngress: async (addresses) => {
      const ingress = addresses.map((ip) => ({ ip }));
      await api.patch(`${path}/status`, { status: { loadBalancer: { ingress } } });
    },
    remove: () => api.delete(path),
  };
}

interface CreatedSpec {
  readonly clusterIPs?: readonly string[];
  readonly ports?: readonly { readonly nodePort?: number }[];
  readonly healthCheckNodePort?: number;
}

/** The API server's own words, which need no distrust here. */
function read(spec: unknown): CreatedSpec {
  return typeof spec === "object" && spec !== null ? spec : {};
}
