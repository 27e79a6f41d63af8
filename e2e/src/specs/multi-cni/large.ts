import { expectAnswers } from "../expect.ts";
import { expectBytes } from "../expect-bytes.ts";
import type { Spec } from "../spec.ts";
import { excludedNetwork, needsExcluded } from "./networks.ts";

const MEBIBYTES = 4;

export const large: Spec = {
  name: `${MEBIBYTES} MiB from network to network, through our service and from pod to pod, to the other node`,
  suite: "multi-cni",
  unfit: needsExcluded,
  run: async (scene) => {
    const { family } = scene;
    const [first, second] = scene.nodes;
    const network = excludedNetwork(scene.cluster).name;
    const [web, ours, theirs, theirWeb] = await Promise.all([
      scene.pod({ node: second, app: "web" }),
      scene.pod({ node: first }),
      scene.pod({ node: first, network }),
      scene.pod({ node: second, network }),
    ]);
    const service = await scene.service("web", { selector: { app: "web" }, ports: [{ port: 80 }] });
    const atService = { to: service.clusterIP, port: 80 };
    await expectAnswers(theirs, atService, { by: [web] });
    await expectBytes(theirs, atService, MEBIBYTES << 20);
    await expectBytes(theirs, { to: web.addresses[family] ?? "", port: 80 }, MEBIBYTES << 20);
    await expectBytes(ours, { to: theirWeb.addresses[family] ?? "", port: 80 }, MEBIBYTES << 20);
    await expectBytes(theirs, { to: theirWeb.addresses[family] ?? "", port: 80 }, MEBIBYTES << 20);
  },
};
