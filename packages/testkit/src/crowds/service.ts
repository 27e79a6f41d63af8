import { endpointSlice } from "../objects/endpoint-slice.ts";
import type { RawObject } from "../objects/raw.ts";
import { service } from "../objects/service.ts";
import { type Condition, CROWD_ENDPOINTS } from "./history.ts";

export const CROWD_ADDRESS = "10.96.9.9";
export const CROWD_NODE_PORT = 30_909;

/** The service whose clients are followed. */
export interface CrowdService {
  readonly name: string;
  readonly portName: string;
  readonly seconds: number;
  readonly conditions: readonly Condition[];
}

export const FIRST_SERVICE: CrowdService = {
  name: "crowd-0",
  portName: "http",
  seconds: 10_800,
  conditions: Array.from({ length: CROWD_ENDPOINTS }, (_, at) => (at < 5 ? "ready" : "none")),
};

const addressOf = (at: number) => `10.144.128.${at + 1}`;
const PORT = 8080;

export function crowdObjects({ name, portName, seconds, conditions }: CrowdService): readonly RawObject[] {
  const endpoints = conditions.flatMap((condition, at) =>
    condition === "none"
      ? []
      : [
          {
            address: addressOf(at),
            nodeName: "node-b",
            ready: condition === "ready",
            serving: condition !== "unready",
            terminating: condition === "terminating",
          },
        ],
  );
  return [
    service(name, {
      type: "NodePort",
      clusterIPs: [CROWD_ADDRESS],
      ports: [{ name: portName, port: 80, targetPort: PORT, nodePort: CROWD_NODE_PORT }],
      affinitySeconds: seconds,
    }),
    endpointSlice(name, { service: name, family: "IPv4", ports: [{ name: portName, port: PORT }], endpoints }),
  ];
}

/** Those that packets may go to: the ready ones, or where there is none those that still serve. */
export function usableEndpoints({ conditions }: CrowdService): readonly string[] {
  const of = (wanted: Condition) =>
    conditions.flatMap((condition, at) => (condition === wanted ? [`${addressOf(at)}:${PORT}`] : []));
  const ready = of("ready");
  return ready.length > 0 ? ready : of("terminating");
}
