import type { Progress } from "../measure/prepare.ts";
import type { ProxyName } from "../proxy/measured-proxy.ts";
import { type HourFigures, type ReturnFigures, simulateHour, simulateReturn } from "./simulate.ts";

/** As it is kept in `results/fleet.json`. Simulated: no machine has a part in it. */
export interface FleetResult {
  readonly agents: number;
  readonly proxies: Readonly<Record<ProxyName, FleetFigures>>;
}

interface FleetFigures {
  /** Of each node. */
  readonly hour: HourFigures;
  /** Of all nodes. */
  readonly restart: ReturnFigures;
}

/** Nodes of the hour: one stands for all, some average out its chances. */
const SOME = 50;
const SECONDS_AWAY = 60;

export async function simulateFleet(agents: number, progress: Progress): Promise<FleetResult> {
  const of = async (proxy: ProxyName): Promise<FleetFigures> => {
    progress(proxy);
    const hour = await simulateHour(proxy, Math.min(agents, SOME));
    return { hour, restart: await simulateReturn(proxy, agents, SECONDS_AWAY) };
  };
  return { agents, proxies: { fairlead: await of("fairlead"), "kube-proxy": await of("kube-proxy") } };
}
