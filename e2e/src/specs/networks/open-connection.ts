import { fileURLToPath } from "node:url";
import { modeNamed } from "@fairlead/lab/modes";
import type { Client } from "@fairlead/lab/provider/cluster";
import { expectAnswers, expectUntouched } from "../expect.ts";
import { OWNERSHIP } from "../multi-cni/networks.ts";
import { able, needs } from "../needs.ts";
import type { Scene } from "../scene.ts";
import type { Spec } from "../spec.ts";

const KEPT = fileURLToPath(new URL("programs/kept-main.ts", import.meta.url));
const PORTS = [
  { name: "tcp", port: 80, protocol: "TCP" },
  { name: "udp", port: 80, protocol: "UDP" },
] as const;
/** One flow to the kernel, however often it is asked. */
const FLOW = { protocol: "UDP", port: 80, sourcePort: 5_353, count: 1, parallel: 1, timeoutMs: 2_500 } as const;

async function untilFlow({ until }: Scene, from: Client, to: string, wanted: "answered" | "let go"): Promise<void> {
  await until(`the flow of ${from.name} to ${to} to be ${wanted}`, async () => {
    const [result] = await from.send({ ...FLOW, to });
    const came = result?.kind === "answer" ? "answered" : "let go";
    return came === wanted ? undefined : came;
  });
}

export const openConnection: Spec = {
  name: "what is open while its service is left to another network: TCP goes on where the mode can, a busy UDP client is let go",
  suite: "multi-cni",
  unfit: needs("pod-script"),
  run: async (scene) => {
    const [first, second] = scene.nodes;
    const [caller, web] = await Promise.all([scene.pod({ node: first }), scene.pod({ node: second, app: "web" })]);
    const service = await scene.service("web", { selector: { app: "web" }, ports: PORTS });
    const target = { to: service.clusterIP, port: 80 };
    await expectAnswers(caller, target, { by: [web] });
    const kept = await able(caller.startScript)(KEPT, [target.to, String(target.port)]);
    const expectOn = async (when: string, wanted: string) => {
      const came = await kept.ask("ask");
      if (came !== wanted) throw new Error(`wanted ${wanted} on the connection ${when}; came ${came}`);
    };
    await expectOn("at first", web.name);
    for (const from of [caller, first]) await untilFlow(scene, from, target.to, "answered");
    await service.annotate(OWNERSHIP, "foreign");
    await Promise.all([caller, first].map((from) => untilFlow(scene, from, target.to, "let go")));
    await expectUntouched(caller, target);
    await expectOn("afterwards", modeNamed(scene.cluster.mode).keepsLeft ? web.name : "nothing");
    await kept.stop();
  },
};
