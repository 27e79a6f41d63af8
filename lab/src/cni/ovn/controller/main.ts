import { parseArgs } from "node:util";
import { familyOf } from "@fairlead/base";
import { createRunner } from "@fairlead/kernel";
import { createApiSource, loadConnection } from "@fairlead/watch";
import { northboundClient } from "../clients.ts";
import { balancerCommands } from "./balancers.ts";
import { followServices } from "./plan.ts";

/**
 * What kube-ovn's controller does for services: it follows the API server and keeps OVN's load balancers as the
 * services are. A process of its own; runs until it is asked to end.
 */
const { values } = parseArgs({
  options: {
    kubeconfig: { type: "string" },
    northbound: { type: "string" },
    "pod-cidr": { type: "string", multiple: true },
    switch: { type: "string", multiple: true },
  },
});
const { kubeconfig, northbound, "pod-cidr": podCIDRs = [], switch: switches = [] } = values;
if (kubeconfig === undefined || northbound === undefined) throw new Error("--kubeconfig and --northbound are needed");

const stop = new AbortController();
process.on("SIGTERM", () => stop.abort());
const ovn = northboundClient(createRunner(), northbound);
const families = podCIDRs.map(familyOf);
const subscriptions = followServices(families, async (changes) => {
  const commands = balancerCommands(changes, { podCIDRs, switches });
  if (commands.length === 0) return;
  console.log(commands.map((words) => words.join(" ")).join("\n"));
  await ovn(commands, "hv");
});
const source = createApiSource({
  connection: await loadConnection({ kubeconfig }),
  nodeName: "",
  userAgent: "ovn-service-controller",
  onReport: (report) => console.log(JSON.stringify(report)),
});
await source.run(subscriptions, stop.signal);
