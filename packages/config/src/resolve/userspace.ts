import type { IptablesSettings, UserspaceSettings } from "../mode-settings.ts";
import type { Report } from "../report.ts";
import type { ConfigInput } from "./input.ts";

/** kube-proxy's in v1.25 (--udp-timeout). */
const UDP_IDLE_MS = 250;
/** As long as connection tracking remembers one. */
const TCP_IDLE_MS = 24 * 3_600_000;
/** What kube-proxy raised its limit of open files to in this mode, halved. */
const MAX_SOCKETS = 32_000;
const MAX_SOCKETS_PER_SERVICE = 16_000;

export function resolveUserspace(
  input: ConfigInput,
  inUse: boolean,
  report: Report,
): Omit<UserspaceSettings, keyof IptablesSettings> {
  const { udpIdleTimeout = 0 } = input.kubeProxy;
  const { tcpIdleTimeout, maxSockets, maxSocketsPerService } = input.fairlead.userspace;
  const { userspaceOnly } = input.options;
  if (inUse && udpIdleTimeout < 0) report.error("udpIdleTimeout", "must be greater than 0, such as 250ms");
  if ((tcpIdleTimeout ?? 0) < 0) report.error("userspace.tcpIdleTimeout", "must not be negative; 0s means no limit");
  if (userspaceOnly && !inUse) report.error("userspace-only", "needs --proxy-mode=userspace");
  return {
    only: userspaceOnly,
    udpIdleTimeoutMs: udpIdleTimeout === 0 ? UDP_IDLE_MS : udpIdleTimeout,
    tcpIdleTimeoutMs: tcpIdleTimeout ?? TCP_IDLE_MS,
    maxSockets: maxSockets ?? MAX_SOCKETS,
    maxSocketsPerService: maxSocketsPerService ?? MAX_SOCKETS_PER_SERVICE,
  };
}
