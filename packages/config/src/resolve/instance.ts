import { HEALTHZ_PORT, METRICS_PORT } from "../table/kube-proxy.ts";
import type { ProxyMode } from "../types.ts";

/** Defaults of an agent. One with a name runs alongside another proxy, which has kube-proxy's. */
export interface InstanceDefaults {
  /** The mode where none is chosen. */
  readonly mode: ProxyMode;
  /** The port of the health server. */
  readonly healthzPort: number;
  /** The port of the metrics server. */
  readonly metricsPort: number;
  /** Limits and timeouts of connection tracking; 0: leave as they are. */
  readonly conntrack: {
    readonly maxPerCore: number;
    readonly min: number;
    readonly tcpEstablishedTimeoutMs: number;
    readonly tcpCloseWaitTimeoutMs: number;
  };
}

/** Those of the node's first proxy. */
const FIRST: InstanceDefaults = {
  mode: "iptables",
  healthzPort: HEALTHZ_PORT,
  metricsPort: METRICS_PORT,
  conntrack: {
    maxPerCore: 32_768,
    min: 131_072,
    tcpEstablishedTimeoutMs: 24 * 3_600_000,
    tcpCloseWaitTimeoutMs: 3_600_000,
  },
};

/** What holds for the whole node is left as the first proxy has set it. */
const NAMED: InstanceDefaults = {
  mode: "nftables",
  healthzPort: 10_356,
  metricsPort: 10_349,
  conntrack: { maxPerCore: 0, min: 0, tcpEstablishedTimeoutMs: 0, tcpCloseWaitTimeoutMs: 0 },
};

/**
 * The defaults of an agent with a service proxy name, or of the node's first proxy.
 *
 * @param serviceProxyName empty: the node's first proxy
 */
export function instanceDefaults(serviceProxyName: string): InstanceDefaults {
  return serviceProxyName === "" ? FIRST : NAMED;
}

export interface Instance {
  /** Empty: the services that no other proxy was given. */
  readonly serviceProxyName: string;
  /** It takes the slices of pods' secondary networks, and no others. */
  readonly serviceNetwork: boolean;
  readonly defaults: InstanceDefaults;
}
