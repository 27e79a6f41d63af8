import type { ApiObject } from "@fairlead/lab/control-plane/api-client";
import type { Bystanders } from "./bystanders.ts";

export const TENANT = { name: "tenant" };
/** Who may edit the networks' own objects, which have no namespace. */
export const EDITOR = { name: "network-editor" };
export const CONTROLLER = { name: "kube-ovn-controller" };
export const KUBELET = { name: "system:node:node-z", groups: ["system:nodes"] };

/** The block of that length around an IPv4 address. */
export function around(address: string, length: number): string {
  const number = address.split(".").reduce((sum, part) => sum * 256 + Number(part), 0);
  const size = 2 ** (32 - length);
  const first = Math.floor(number / size) * size;
  return `${[24, 16, 8, 0].map((shift) => (first >>> shift) & 255).join(".")}/${length}`;
}

/** What others aim at: the endpoints of three services, a part of our pool, and the API server. */
export const endpointSubnets = (at: Bystanders) =>
  [at.dnsEndpoint, at.webEndpoint, at.apiServer].map((one) => around(one, 29));
export const typo = (at: Bystanders) => around(at.webEndpoint, 29);
export const overAPI = (at: Bystanders) => around(at.apiServer, 24);

export function service(namespace: string, name: string, spec: unknown = {}, annotations: unknown = {}): ApiObject {
  return { apiVersion: "v1", kind: "Service", metadata: { name, namespace, annotations }, spec };
}

export const PORTS = [{ port: 80 }];
