import { DEVICE } from "@fairlead/backend-ipvs";
import type { Lab } from "@fairlead/lab/plain/lab";
import { whoAnswers } from "@fairlead/lab/plain/requests";
import { NGINX_CALICO_IP, NGINX_OVN_IP, objects } from "@fairlead/lab/plain/scene";
import { clientA, nginxCalico, ovnClient } from "@fairlead/testkit";
import { serveNode } from "./served.ts";
import type { Spec } from "./suite.ts";

/** Two networks' services of which one is ours, as an operator would look at them. */
export const foundingSpecs: readonly Spec[] = [
  {
    name: "ipvs founding case: the Calico service in ip addr and ipvsadm -l -n, and nothing of the OVN service",
    run: async (lab) => {
      const node = await serveNode(lab, objects);
      try {
        return await look(lab);
      } finally {
        await node.cleanup();
      }
    },
  },
];

async function look(lab: Lab): Promise<readonly string[]> {
  const print = async (...argv: [string, ...string[]]) => (await lab.runner("node-a").run(argv)).stdout;
  const addresses = await print("ip", "addr", "show", "dev", DEVICE);
  const servers = await print("ipvsadm", "-l", "-n");
  const problems: string[] = [];
  const demand = (what: string, met: boolean) => {
    if (!met) problems.push(`${what}:\n${addresses}\n${servers}`);
  };
  demand("no address of ours", /^ +inet 10\.96\.67\.75\/32 scope global kube-ipvs0 *$/m.test(addresses));
  demand(
    "no virtual server of ours",
    /^TCP +10\.96\.67\.75:80 rr *\n +-> 10\.144\.154\.71:80 +Masq +1 +0 +0 *$/m.test(servers),
  );
  demand("something of the OVN service", !`${addresses}${servers}`.includes(NGINX_OVN_IP));
  demand("something of an OVN endpoint", !servers.includes("10.244."));
  for (const from of [clientA, ovnClient]) {
    demand(`${from.name} is not served`, (await whoAnswers(lab, from, NGINX_CALICO_IP)) === nginxCalico.name);
    demand(`${from.name} is held up`, (await whoAnswers(lab, from, NGINX_OVN_IP)) === "sink");
  }
  return problems;
}
