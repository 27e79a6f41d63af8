import { parseArgs } from "node:util";
import { createRunner } from "@fairlead/kernel";
import { createApiSource, loadConnection } from "@fairlead/watch";
import { messageOf } from "../../../support/processes.ts";
import { northboundClient } from "../daemons.ts";
import { annotate, followServices, vpcToWrite } from "./balancers.ts";

/**
 * What kube-ovn's controller does for services: it follows the API server, keeps OVN's load balancers as all services
 * are, and writes on each of them which VPC it belongs to. A process of its own; runs until it is asked to end.
 */
const { values } = parseArgs({
  options: {
    kubeconfig: { type: "string" },
    northbound: { type: "string" },
    "pod-cidr": { type: "string", multiple: true },
  },
});
const { kubeconfig, northbound, "pod-cidr": podCIDRs = [] } = values;
if (kubeconfig === undefined || northbound === undefined) throw new Error("--kubeconfig and --northbound are needed");

const stop = new AbortController();
process.on("SIGTERM", () => stop.abort());
const ovn = northboundClient(createRunner(), northbound);
const connection = await loadConnection({ kubeconfig });
const subscriptions = followServices(async ({ commands, services }) => {
  if (commands.length > 0) {
    console.log(commands.map((words) => words.join(" ")).join("\n"));
    await ovn(commands, "hv");
  }
  await Promise.all(services.map(write));
});
const source = createApiSource({
  connection,
  nodeName: "",
  userAgent: "ovn-service-controller",
  onReport: (report) => console.log(JSON.stringify(report)),
});
await source.run(subscriptions, stop.signal);

async function write(followed: Parameters<typeof vpcToWrite>[0]): Promise<void> {
  const vpc = vpcToWrite(followed, podCIDRs);
  if (vpc === undefined) return;
  const answer = await annotate(connection, followed.service, vpc).catch(messageOf);
  if (answer !== 200) console.log(`${followed.service.namespace}/${followed.service.name}: VPC not written: ${answer}`);
}
