import { basename, dirname } from "node:path";
import { createRunner } from "@fairlead/kernel";
import { BROWSER } from "@fairlead/tooling/browser-program";
import { loadFlavor } from "../../cni/flavor.ts";
import { missingControlPlane, missingPrograms } from "../../control-plane/programs.ts";
import { isThere, type Lack, lackingPrograms, lackOf, missingHere, type NeededProgram } from "../../support/machine.ts";
import { programsOf } from "../netns/cluster.ts";
import { type ClusterRequest, type Provider, shapeOf } from "../provider.ts";
import { openCluster } from "./cluster.ts";
import { overlayNames } from "./fairlead.ts";
import { installers, misplacedNetwork } from "./networks/install.ts";
import { provideImages } from "./node-image.ts";
import { cluster, published as publishedSet } from "./programs.ts";
import { published } from "./published.ts";
import type { Source } from "./source.ts";

const DOCKER: readonly NeededProgram[] = [
  { by: "kind", program: "dockerd", debian: "docker.io" },
  { by: "kind", program: "docker", debian: "docker.io" },
  { by: "kind", program: "runc", debian: "runc" },
];

/** Kubernetes in Docker, all of it made on this machine: nodes with systemd, containerd and kubelets, and images. */
export const kind: Provider = provider("kind", {
  source: { installers, images: (kubernetes, progress) => provideImages(createRunner(), kubernetes, progress) },
  programs: [...DOCKER, ...["jq", "mmdebstrap", "gcc"].map((program) => ({ by: "kind", program, debian: program }))],
  lacks: async ({ cni, kubernetes }) => {
    const ofFlavors = lackingPrograms(programsOf(await Promise.all(cni.map(loadFlavor))));
    const built = [missingControlPlane(kubernetes), missingPrograms(cluster, kubernetes)].map(lackOf);
    return (await Promise.all([...built, ofFlavors])).flat();
  },
});

/** Kubernetes in Docker out of published images and manifests; all else is the same. */
export const kindPublished: Provider = provider("kind-published", {
  source: published,
  programs: DOCKER,
  lacks: ({ kubernetes }) => lackOf(missingPrograms(publishedSet, kubernetes)),
});

interface KindOf {
  readonly source: Source;
  readonly programs: readonly NeededProgram[];
  /** What only this source needs. */
  readonly lacks: (request: ClusterRequest) => Promise<readonly Lack[]>;
}

function provider(name: string, { source, programs, lacks }: KindOf): Provider {
  return {
    name,
    flavors: async () => Object.keys(source.installers),
    overlays: overlayNames,
    lacks: async (request) => {
      if (process.getuid?.() !== 0) return [{ what: "kind here takes root: it runs a Docker daemon of its own" }];
      const { mode } = request;
      const overlay = (await overlayNames()).includes(mode)
        ? undefined
        : `deploy/overlays has nothing for ${mode} mode`;
      const misfits = [overlay, misplacedNetwork(request)].flatMap((what) => (what === undefined ? [] : [{ what }]));
      return [
        ...(await lackingPrograms(programs)),
        ...(await lackOf(missingHere())),
        ...(await lacks(request)),
        ...misfits,
      ];
    },
    shape,
    open: async (request, folder, progress) =>
      openCluster({
        source,
        shape: await shape(request),
        flavors: await Promise.all(request.cni.map(loadFlavor)),
        request,
        id: basename(dirname(folder)),
        folder,
        progress,
      }),
  };
}

async function shape(request: ClusterRequest) {
  const nodeNames = Array.from({ length: request.nodes }, (_, at) => `fairlead-worker${at === 0 ? "" : at + 1}`);
  const browser = (await isThere(BROWSER)) ? (["browser"] as const) : [];
  return { ...(await shapeOf("kind", request, nodeNames)), abilities: ["learn", ...browser] as const };
}
