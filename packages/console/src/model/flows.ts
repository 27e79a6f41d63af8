import { type Flow, trafficByService } from "@fairlead/inspect";
import type { FlowsAnswer } from "../protocol/index.ts";

/** More rows than anybody reads. */
const MOST_SERVICES = 200;
const MOST_FLOWS = 200;

/** What the page shows of connections: the sums, and the connections that hang before the others. */
export function shownFlows(flows: readonly Flow[]): Pick<FlowsAnswer, "traffic" | "flows" | "more"> {
  const traffic = trafficByService(flows);
  const hang = flows.filter(hangs);
  const shown = [...hang, ...flows.filter((flow) => !hangs(flow))].slice(0, MOST_FLOWS);
  return {
    traffic: traffic.slice(0, MOST_SERVICES),
    flows: shown,
    more: {
      services: Math.max(0, traffic.length - MOST_SERVICES),
      flows: flows.length - shown.length,
    },
  };
}

function hangs({ endpoint }: Flow): boolean {
  return endpoint?.condition === "gone";
}
