import { DEVICE } from "@fairlead/backend-ipvs";
import type { Lab } from "@fairlead/lab/plain/lab";
import { whoAnswers } from "@fairlead/lab/plain/requests";
import { NGINX_CALICO_IP, NGINX_OVN_IP, objects, openScene } from "@fairlead/lab/plain/scene";
import { applySettings } from "@fairlead/lab/wire";
import { clientA, nginxCalico, ovnClient } from "@fairlead/testkit";
import { type CrowdProxy, crowdLife, lifeReport, openCrowdNode } from "../cases/crowds.ts";
import { flowObjects, flowsTold, REMEMBERED } from "../cases/flows.ts";
import { conformance, golden } from "./conformance.ts";
import { drainSpecs, faultSpecs, resetSpecs } from "./fault-specs.ts";
import { meaning } from "./meaning.ts";
import { type Spec, type Suite, serveNode, suiteOf } from "./suite.ts";
import { shadowSpecs, verify } from "./verify-specs.ts";

const nothingLeft = async (_: Lab) => {};

/** The real kube-proxy, where the machine has one. */
const { FAIRLEAD_KUBE_PROXY: kubeProxy = "" } = process.env;

/** 200 clients of a service with session affinity, of each family; the real kube-proxy's, too, where there is one. */
const crowdSpecs = (kubeProxy: string): readonly Spec[] => [
  crowdSpec("Fairlead", { fairlead: "ipvs" }),
  ...(kubeProxy === "" ? [] : [crowdSpec("the real kube-proxy", { kubeProxy, mode: "ipvs", variant: "legacy" })]),
];

/** `fairlead flows` alongside a real IPVS. */
const flowSpecs: readonly Spec[] = [
  {
    name: "ipvs flows: every connection of a service is told with service, endpoint and owner, and no other",
    run: async (lab) => {
      await applySettings(lab.runner("node-a"), REMEMBERED);
      const scene = await openScene(lab, flowObjects, { flags: ["--proxy-mode=ipvs"] });
      try {
        const { made, told, code } = await flowsTold(lab, scene.folder.manifests, false);
        const problems = [...without(made.lines, told, "missing"), ...without(told, made.lines, "invented")];
        if (code !== 0) problems.push(`exit code ${code}`);
        if (made.connections < 1_000) problems.push(`only ${made.connections} connections were made`);
        return problems;
      } finally {
        await scene.close();
      }
    },
  },
];

/** Two networks' services of which one is ours, as an operator would look at them. */
const foundingSpecs: readonly Spec[] = [
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

export const suites: ReadonlyMap<string, Suite> = new Map([
  ["meaning", meaning],
  ["conformance", conformance],
  ["golden", golden],
  ["founding", suiteOf(foundingSpecs, nothingLeft)],
  ["faults", suiteOf(faultSpecs, nothingLeft)],
  ["drain", suiteOf(drainSpecs, nothingLeft)],
  ["reset", suiteOf(resetSpecs, nothingLeft)],
  ["verify", verify],
  ["crowds", suiteOf(crowdSpecs(kubeProxy), nothingLeft)],
  ["flows", suiteOf(flowSpecs, nothingLeft)],
  ...(kubeProxy === "" ? [] : [["shadow", suiteOf(shadowSpecs(kubeProxy), nothingLeft)] as const]),
]);

function crowdSpec(who: string, proxy: CrowdProxy): Spec {
  return {
    name: `ipvs crowds: with ${who} each of 200 clients keeps its endpoint while it is usable`,
    run: async (lab) => {
      await using node = await openCrowdNode(lab);
      try {
        await node.serve(proxy);
        const restart = () => node.serve(proxy);
        const lived = await crowdLife(node, { restart, remembersAll: true, sharesFrontends: false, whole: true });
        process.stderr.write(lifeReport(`${who}, ipvs`, lived));
        return lived.met.flatMap(({ step, family, wrong }) =>
          wrong === undefined ? [] : `${step}, ${family}: ${wrong}`,
        );
      } finally {
        await node.cleanUp();
      }
    },
  };
}

/** The lines that stand more often in one list than in the other. */
function without(lines: readonly string[], others: readonly string[], what: string): readonly string[] {
  const left = Map.groupBy(others, (line) => line);
  return lines.filter((line) => left.get(line)?.pop() === undefined).map((line) => `${what}: ${line}`);
}

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
