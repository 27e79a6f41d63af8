import { connect, type Socket } from "node:net";
import { nextTurn } from "@fairlead/base";
import type { PlanEndpoint } from "@fairlead/core";
import { endpointKey } from "./balancer.ts";
import type { RelayRequest } from "./relay.ts";

/**
 * Milliseconds that each try to connect may take, as kube-proxy had them; as many tries, whatever number of endpoints.
 */
export const DIAL_TIMEOUTS: readonly number[] = [250, 500, 1_000, 2_000];

/** Why a client could not be given to an endpoint. */
export type DialFailure = "unreachable" | "no-endpoint";

/**
 * Connects to the endpoint whose turn it is, or to the next one where that cannot be connected.
 *
 * @param given aborts when the client has gone: nothing is tried anymore
 */
export async function dial(request: RelayRequest, client: string, given: AbortSignal): Promise<Socket | DialFailure> {
  const failed = new Set<string>();
  for (const timeout of DIAL_TIMEOUTS) {
    const endpoint = request.service.choose(client, failed);
    if (endpoint === undefined) return "no-endpoint";
    const socket = await connected(endpoint, timeout, request, given);
    if (socket !== undefined) return socket;
    if (given.aborted) return "unreachable";
    failed.add(endpointKey(endpoint));
    request.traffic.passedOver();
  }
  return "unreachable";
}

function connected(
  { address: host, port }: PlanEndpoint,
  timeout: number,
  { clock }: RelayRequest,
  given: AbortSignal,
): Promise<Socket | undefined> {
  return new Promise((resolve) => {
    const socket = connect({ host, port, allowHalfOpen: true, noDelay: true, keepAlive: true });
    // It may break off between two owners; each of them has a handler of its own alongside this one.
    socket.on("error", () => {});
    let settled = false;
    const give = (result: Socket | undefined) => {
      if (settled) return;
      settled = true;
      cancel();
      given.removeEventListener("abort", abandon);
      socket.off("connect", succeed).off("error", abandon);
      if (result === undefined) socket.destroy();
      resolve(result);
    };
    const succeed = () => give(socket);
    const abandon = () => give(undefined);
    // A busy event loop is late for its timers, and sees a connection that was made in time only after them.
    const cancel = clock.after(timeout, () => void nextTurn().then(abandon));
    given.addEventListener("abort", abandon);
    socket.on("connect", succeed).on("error", abandon);
    if (given.aborted) abandon();
  });
}
