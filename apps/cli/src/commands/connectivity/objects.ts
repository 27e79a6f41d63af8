import type { IPFamily } from "@fairlead/base";
import type { Manifest } from "../../cluster/resources.ts";
import type { ServiceName } from "./plan.ts";
import type { Role } from "./pod.ts";

const SERVER_PORT = 8080;
export const SERVICE_PORT = 80;

export const OWN_LABEL = { "app.kubernetes.io/managed-by": "fairlead-connectivity" } as const;
const SERVES = "fairlead.dev/serves-";

/** Of which pods a service's endpoints are. */
type Group = "both" | "here" | "hairpin" | "rolled" | "nothing";

interface Served {
  readonly name: ServiceName | "web-rolled";
  readonly of: Group;
  readonly spec?: Readonly<Record<string, unknown>>;
  /** Has addresses of external networks. */
  readonly external?: true;
}

const LOAD_BALANCER = {
  type: "LoadBalancer",
  // No controller of the cluster has this class: the test gives the address itself.
  loadBalancerClass: "fairlead.dev/connectivity",
} as const;

export const SERVED: readonly Served[] = [
  { name: "web", of: "both", spec: LOAD_BALANCER, external: true },
  { name: "web-local", of: "here", spec: { ...LOAD_BALANCER, externalTrafficPolicy: "Local" }, external: true },
  { name: "web-internal", of: "here", spec: { internalTrafficPolicy: "Local" } },
  { name: "web-sticky", of: "both", spec: { sessionAffinity: "ClientIP" } },
  { name: "web-none", of: "nothing" },
  { name: "web-headless", of: "both", spec: { clusterIP: "None" } },
  { name: "web-hairpin", of: "hairpin" },
  { name: "web-rolled", of: "rolled" },
];

/** Pods run on the nodes and in their network too: no level of Pod Security that refuses that. */
export function namespaceObject(name: string): Manifest {
  const labels = { ...OWN_LABEL, "pod-security.kubernetes.io/enforce": "privileged" };
  return { apiVersion: "v1", kind: "Namespace", metadata: { name, labels } };
}

/** The labels of a Service that the instance of that name serves; "": the nodes' first proxies. */
export function serviceLabels(instance: string): Readonly<Record<string, string>> {
  return { ...OWN_LABEL, ...(instance !== "" && { "service.kubernetes.io/service-proxy-name": instance }) };
}

/**
 * @param externalIPs may be empty
 * @param instance the service proxy name of the proxies that serve it; "": the nodes' first ones
 */
export function serviceObject(
  { name, of, spec = {} }: Served,
  namespace: string,
  families: readonly IPFamily[],
  externalIPs: readonly string[],
  instance: string,
): Manifest {
  const ports = (["TCP", "UDP"] as const).map((protocol) => {
    return { name: protocol.toLowerCase(), protocol, port: SERVICE_PORT, targetPort: SERVER_PORT };
  });
  return {
    apiVersion: "v1",
    kind: "Service",
    metadata: { name, namespace, labels: serviceLabels(instance) },
    spec: {
      ...spec,
      selector: { [`${SERVES}${of}`]: "yes" },
      ports,
      ipFamilyPolicy: families.length > 1 ? "RequireDualStack" : "SingleStack",
      ipFamilies: families,
      ...(externalIPs.length > 0 && { externalIPs }),
    },
  };
}

export interface PodSettings {
  readonly namespace: string;
  readonly image: string;
  /** What `node -e` runs. */
  readonly script: string;
}

export interface PodWanted {
  readonly name: string;
  readonly node: string;
  readonly roles: readonly Role[];
  /** Of which services it is an endpoint. */
  readonly serves?: readonly Group[];
  readonly hostNetwork?: true;
}

export function podObject(
  { namespace, image, script }: PodSettings,
  { name, node, roles, serves = [], hostNetwork }: PodWanted,
): Manifest {
  const labels = Object.fromEntries(serves.map((group) => [`${SERVES}${group}`, "yes"]));
  const containers = roles.map((role) => ({
    name: role.kind,
    image,
    imagePullPolicy: "IfNotPresent",
    command: ["node", "--input-type=module", "-e", script, JSON.stringify(role)],
    ...(role.kind === "serve" && { readinessProbe: { httpGet: { path: "/", port: role.port }, periodSeconds: 1 } }),
    securityContext: {
      allowPrivilegeEscalation: false,
      capabilities: { drop: ["ALL"] },
      runAsNonRoot: true,
      runAsUser: 65_532,
      seccompProfile: { type: "RuntimeDefault" },
    },
  }));
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, namespace, labels: { ...OWN_LABEL, ...labels } },
    spec: {
      // Named, not scheduled: what keeps other pods away keeps none of these away.
      nodeName: node,
      tolerations: [{ operator: "Exists" }],
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      restartPolicy: "Never",
      terminationGracePeriodSeconds: 20,
      ...(hostNetwork === true && { hostNetwork: true, dnsPolicy: "ClusterFirstWithHostNet" }),
      containers,
    },
  };
}

export function serverRole(name: string): Role {
  return { kind: "serve", name, port: SERVER_PORT };
}
