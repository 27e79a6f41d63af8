import type { Report } from "../report.ts";
import type { ConfigInput } from "../resolve/input.ts";
import { HEALTHZ_PORT, METRICS_PORT } from "../table/kube-proxy.ts";
import type { ResolvedConfig, SocketAddress } from "../types.ts";
import { whyUnseen } from "./unseen.ts";

/** A proxy programs a change within this time, unless its cluster is very large. */
const GRACE_MS = 5_000;
/** A change may wait for one period; the sync that takes it in may be the second one. */
const PERIODS = 3;

/** Added to kube-proxy's own ports, which kube-proxy has: 10249 becomes 10449, 10256 becomes 10456. */
const PORTS_APART = 200;

type Resolved = Omit<ResolvedConfig, "shadow">;

/**
 * The configuration of a shadow run, where one is asked for: mostly kube-proxy's own file, whose ports are in use by
 * kube-proxy. Nothing has to outlive a restart.
 */
export function resolveShadow(config: Resolved, { fairlead }: ConfigInput, report: Report): ResolvedConfig {
  const { shadow, shadowGracePeriod: given } = fairlead;
  if ((given ?? 0) < 0) report.error("shadowGracePeriod", "must not be negative, such as 5s");
  if (shadow !== true) return config;
  const reason = whyUnseen(config.mode);
  if (reason !== undefined) report.error("shadow", reason);
  if (config.serviceProxyName !== "") {
    const name = report.name("serviceProxyName");
    report.error(
      "shadow",
      `compares with the node's default proxy, which does not serve the Services that ${name} selects`,
    );
  }
  const { healthzBindAddress, replyVia: _writes, ...rest } = config;
  return {
    ...rest,
    shadow: { gracePeriodMs: given ?? Math.max(GRACE_MS, PERIODS * config[config.mode].minSyncPeriodMs) },
    metricsBindAddress: apart(config.metricsBindAddress, METRICS_PORT),
    ...(healthzBindAddress && { healthzBindAddress: apart(healthzBindAddress, HEALTHZ_PORT) }),
    stateDir: "",
  };
}

function apart({ address, port }: SocketAddress, taken: number): SocketAddress {
  return { address, port: port === taken ? port + PORTS_APART : port };
}
