import { fileURLToPath } from "node:url";
import { modeNamed } from "../../modes/index.ts";
import { expectAnswers, expectUntouched } from "../expect.ts";
import { OWNERSHIP } from "../multi-cni/networks.ts";
import { able, needs } from "../needs.ts";
import type { Spec } from "../spec.ts";

const KEPT = fileURLToPath(new URL("programs/kept-main.ts", import.meta.url));

export const openConnection: Spec = {
  name: "a connection that is open while its service is left to another network: its endpoint goes on, where the mode can",
  suite: "multi-cni",
  unfit: needs("pod-script"),
  run: async (scene) => {
    const [first, second] = scene.nodes;
    const [caller, web] = await Promise.all([scene.pod({ node: first }), scene.pod({ node: second, app: "web" })]);
    const service = await scene.service("web", { selector: { app: "web" }, ports: [{ port: 80 }] });
    const target = { to: service.clusterIP, port: 80 };
    await expectAnswers(caller, target, { by: [web] });
    const kept = await able(caller.startScript)(KEPT, [target.to, String(target.port)]);
    const expectOn = async (when: string, wanted: string) => {
      const came = await kept.ask("ask");
      if (came !== wanted) throw new Error(`wanted ${wanted} on the connection ${when}; came ${came}`);
    };
    await expectOn("at first", web.name);
    await service.annotate(OWNERSHIP, "foreign");
    await expectUntouched(caller, target);
    await expectOn("afterwards", modeNamed(scene.cluster.mode).keepsLeft ? web.name : "nothing");
    await kept.stop();
  },
};
