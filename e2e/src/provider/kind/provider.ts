import { basename, dirname } from "node:path";
import { createRunner } from "@fairlead/kernel";
import { loadFlavour } from "../../../cni/load.ts";
import { missingPrograms } from "../../control-plane/program-set.ts";
import { missingControlPlane } from "../../control-plane/programs.ts";
import { isProgram, missingHere } from "../../support/machine.ts";
import { shapeOf } from "../flavours.ts";
import { missingPrograms as missingOfFlavours } from "../netns/networks.ts";
import type { ClusterRequest, Provider } from "../provider.ts";
import { openCluster } from "./cluster.ts";
import { provideImages } from "./images/provide.ts";
import { overlayNames } from "./manifests.ts";
import { misplacedNetwork } from "./networks/install.ts";
import { installers } from "./networks/installers.ts";
import { cluster, published as publishedSet } from "./programs.ts";
import { published } from "./published/source.ts";
import type { Source } from "./source.ts";

/** Kubernetes in Docker, all of it made on this machine: nodes with systemd, containerd and kubelets, and images. */
export const kind: Provider = provider("kind", {
  source: { installers, images: (kubernetes, progress) => provideImages(createRunner(), kubernetes, progress) },
  programs: { ...docker(), jq: "jq", mmdebstrap: "mmdebstrap", gcc: "gcc" },
  missing: async ({ cni, kubernetes }) => {
    const ofFlavours = await missingOfFlavours(await Promise.all(cni.map(loadFlavour)), isProgram);
    const built = [missingControlPlane(kubernetes), missingPrograms(cluster, kubernetes)];
    return [...(await Promise.all(built)), ...ofFlavours];
  },
});

/** Kubernetes in Docker out of published images and manifests; all else is the same. */
export const kindPublished: Provider = provider("kind-published", {
  source: published,
  programs: docker(),
  missing: async ({ kubernetes }) => [await missingPrograms(publishedSet, kubernetes)],
});

/** Programs, and the Debian packages that bring them. */
type NeededPrograms = Readonly<Record<string, string>>;

function docker(): NeededPrograms {
  return { dockerd: "docker.io", docker: "docker.io", runc: "runc" };
}

interface KindOf {
  readonly source: Source;
  readonly programs: NeededPrograms;
  /** Of the source alone. */
  readonly missing: (request: ClusterRequest) => Promise<readonly (string | undefined)[]>;
}

function provider(name: string, { source, programs, missing }: KindOf): Provider {
  return {
    name,
    flavours: async () => Object.keys(source.installers),
    overlays: overlayNames,
    missing: async (request) => {
      if (process.getuid?.() !== 0) return ["kind here takes root: it runs a Docker daemon of its own"];
      const { mode } = request;
      const modes = (await overlayNames()).includes(mode) ? [] : [`deploy/overlays has nothing for ${mode} mode`];
      const lacking = [...(await lackingPrograms(programs)), await missingHere(), ...(await missing(request))];
      return [...lacking, ...modes, misplacedNetwork(request)].filter((one) => one !== undefined);
    },
    shape,
    open: async (request, folder, progress) =>
      openCluster({
        source,
        shape: await shape(request),
        flavours: await Promise.all(request.cni.map(loadFlavour)),
        request,
        id: basename(dirname(folder)),
        folder,
        progress,
      }),
  };
}

async function lackingPrograms(programs: NeededPrograms): Promise<readonly (string | undefined)[]> {
  return Promise.all(
    Object.entries(programs).map(async ([program, debian]) =>
      (await isProgram(program)) ? undefined : `kind needs ${program}: apt-get install ${debian}`,
    ),
  );
}

async function shape(request: ClusterRequest) {
  const nodeNames = Array.from({ length: request.nodes }, (_, at) => `fairlead-worker${at === 0 ? "" : at + 1}`);
  return shapeOf("kind", request, nodeNames);
}
