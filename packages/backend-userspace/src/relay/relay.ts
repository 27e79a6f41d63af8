/** What a relay is, and how one is opened. */

import { networkInterfaces } from "node:os";
import { type Clock, isLoopback } from "@fairlead/base";
import type { IPFamily, PlanEndpoint } from "@fairlead/core";
import type { RefusalReason, RelayTraffic, SocketBudget } from "./traffic.ts";

/**
 * Bytes that wait to be sent by UDP on one socket; what comes beyond is lost, as it would be in a full queue of the
 * kernel.
 */
export const MAX_QUEUED_BYTES = 1 << 20;

export interface RelayService {
  /** `namespace/name:port` */
  readonly name: string;
  /** Whose turn it is; undefined: there is no endpoint. `failed` are keys of endpoints that could not be connected. */
  choose(client: string, failed: ReadonlySet<string>): PlanEndpoint | undefined;
  has(endpoint: PlanEndpoint): boolean;
  readonly sockets: SocketBudget;
}

export interface RelayRequest {
  readonly protocol: "TCP" | "UDP";
  readonly address: string;
  /** 0: any that is free. */
  readonly port: number;
  readonly service: RelayService;
  readonly traffic: RelayTraffic;
  readonly clock: Pick<Clock, "monotonic" | "after">;
  readonly udpIdleTimeout: number;
  readonly tcpIdleTimeout: number;
  /** Called with what goes wrong with a socket while it serves. */
  readonly onProblem: (problem: string) => void;
}

/** A listening socket with everything behind it. */
export interface OpenRelay {
  readonly port: number;
  /**
   * The service's endpoints are others now: flows to those that are gone end. TCP connections are never cut. Yields
   * after each flow.
   */
  refresh(): Generator<void, void, void>;
  /** Refuses new clients; TCP connections go on to their end, UDP flows end. */
  close(): void;
}

/** Why a client may not have so many sockets; undefined: it may. */
export function whyRefused(
  { address, service, traffic }: RelayRequest,
  client: string,
  count: number,
): RefusalReason | undefined {
  if (isLoopback(address) && !isOfThisNode(client)) return "not-local";
  if (!service.sockets.has(count)) return "service-limit";
  return traffic.sockets.has(count) ? undefined : "total-limit";
}

/** Takes the sockets of both budgets; negative: gives them back. */
export function takeSockets({ service, traffic }: RelayRequest, count: number): void {
  service.sockets.take(count);
  traffic.sockets.take(count);
}

export const LOOPBACK: Readonly<Record<IPFamily, string>> = { IPv4: "127.0.0.1", IPv6: "::1" };

/**
 * Where route_localnet is set, which iptables mode needs and leaves behind, neighbors on the network reach loopback
 * addresses (CVE-2020-8558).
 */
function isOfThisNode(client: string): boolean {
  if (isLoopback(client)) return true;
  return Object.values(networkInterfaces()).some((addresses) => addresses?.some(({ address }) => address === client));
}
