import { familyOf } from "@fairlead/base";
import type { Protocol, TrafficPolicy } from "@fairlead/core";
import type { RawObject } from "./raw.ts";

export interface ServicePortFields {
  /** Default "". */
  readonly name?: string;
  readonly port: number;
  readonly targetPort?: number;
  readonly nodePort?: number;
  /** Default TCP. */
  readonly protocol?: Protocol;
}

export interface ServiceFields {
  /** Default "default". */
  readonly namespace?: string;
  readonly type?: "ClusterIP" | "NodePort" | "LoadBalancer";
  /** The primary one first. */
  readonly clusterIPs: readonly string[];
  readonly ports: readonly ServicePortFields[];
  readonly externalIPs?: readonly string[];
  readonly ingress?: readonly { readonly ip: string; readonly ipMode?: "VIP" | "Proxy" }[];
  readonly sourceRanges?: readonly string[];
  readonly internalTrafficPolicy?: TrafficPolicy;
  readonly externalTrafficPolicy?: TrafficPolicy;
  readonly affinitySeconds?: number;
  readonly healthCheckNodePort?: number;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly labels?: Readonly<Record<string, string>>;
}

/** A core/v1 Service as the API server stores it, its defaults filled in. */
export function service(name: string, fields: ServiceFields): RawObject {
  const { namespace = "default", labels = {}, annotations = {} } = fields;
  return {
    apiVersion: "v1",
    kind: "Service",
    metadata: { name, namespace, labels, annotations },
    spec: serviceSpec(fields),
    status: { loadBalancer: fields.ingress === undefined ? {} : { ingress: fields.ingress.map(ingress) } },
  };
}

function serviceSpec(fields: ServiceFields): Record<string, unknown> {
  const families = [...new Set(fields.clusterIPs.map(familyOf))];
  const external = fields.type === "NodePort" || fields.type === "LoadBalancer" || fields.externalIPs !== undefined;
  return {
    type: fields.type ?? "ClusterIP",
    clusterIP: fields.clusterIPs[0],
    clusterIPs: fields.clusterIPs,
    ipFamilies: families,
    ipFamilyPolicy: families.length > 1 ? "RequireDualStack" : "SingleStack",
    ports: fields.ports.map(portSpec),
    internalTrafficPolicy: fields.internalTrafficPolicy ?? "Cluster",
    ...(external && { externalTrafficPolicy: fields.externalTrafficPolicy ?? "Cluster" }),
    ...(fields.externalIPs && { externalIPs: fields.externalIPs }),
    ...(fields.sourceRanges && { loadBalancerSourceRanges: fields.sourceRanges }),
    ...(fields.healthCheckNodePort !== undefined && { healthCheckNodePort: fields.healthCheckNodePort }),
    ...affinity(fields.affinitySeconds),
  };
}

function portSpec({ name = "", protocol = "TCP", port, targetPort = port, nodePort }: ServicePortFields) {
  return { ...(name !== "" && { name }), protocol, port, targetPort, ...(nodePort !== undefined && { nodePort }) };
}

function affinity(seconds: number | undefined) {
  if (seconds === undefined) return { sessionAffinity: "None" };
  return { sessionAffinity: "ClientIP", sessionAffinityConfig: { clientIP: { timeoutSeconds: seconds } } };
}

function ingress({ ip, ipMode = "VIP" }: { ip: string; ipMode?: string }) {
  return { ip, ipMode };
}
