import { join } from "node:path";
import { krewArchiveName } from "../krew.ts";
import { installPlugin } from "./krew-install.ts";
import { type Rehearsal, type RehearsalStep, release, versionOf } from "./rehearsal.ts";

const image: RehearsalStep = {
  name: "image: built, pushed, pulled, run",
  run: async (rehearsal) => {
    const { scratch, arches } = rehearsal;
    await scratch.inCheckout(["pnpm", "--silent", "image", "--base-from-packages", "--arch", arches]);
    const { name, digest } = await push(rehearsal, "push-image");
    const archive = join(scratch.dir, "pulled.oci.tar");
    const pull = ["--all", "--src-tls-verify=false", `docker://${name}@${digest}`, `oci-archive:${archive}`] as const;
    await scratch.inCheckout(["skopeo", "copy", ...pull]);
    await scratch.inCheckout(["pnpm", "--filter", "@fairlead/deploy", "test:image"], { FAIRLEAD_IMAGE: archive });
    const version = (await scratch.inCheckout(["skopeo", "--version"])).trim();
    const ran = "as the DaemonSet runs it; --version of each name";
    return { said: `${arches}, ${digest}`, installs: [{ by: "image, pulled", version, ran }] };
  },
};

/** The chart asks for it. */
const API_SERVER = "apiServer=https://192.0.2.1:6443";

const chart: RehearsalStep = {
  name: "chart: pushed, pulled, rendered",
  run: async (rehearsal) => {
    const { scratch } = rehearsal;
    const { name, digest } = await push(rehearsal, "push-chart");
    const version = await versionOf(scratch);
    const from = [`oci://${name}`, "--version", version, "--plain-http", "--kube-version=1.34.0", "--set", API_SERVER];
    const manifests = await scratch.inCheckout(["helm", "template", "fairlead", ...from]);
    const images = new Set(Array.from(manifests.matchAll(/image: "?([^"\s]+)/g), ([, found]) => found));
    const expected = `ghcr.io/fairlead-dev/fairlead:${version}`;
    if (images.size !== 1 || !images.has(expected))
      throw new Error(`its images are ${[...images].join(", ")}, not ${expected}`);
    await scratch.inCheckout(["pnpm", "--filter", "@fairlead/deploy", "test:tools"]);
    const helm = (await scratch.inCheckout(["helm", "version", "--template={{.Version}}"])).trim();
    const objects = manifests.match(/^kind: /gm)?.length ?? 0;
    return {
      said: `${expected}, ${digest}`,
      installs: [{ by: "helm template", version: helm, ran: `${objects} objects, with the image of this version` }],
    };
  },
};

const plugin: RehearsalStep = {
  name: "kubectl plugin: archive, manifest, installed from them",
  run: async ({ scratch }) => {
    await release(scratch, "krew");
    const [version, files] = [await versionOf(scratch), join(scratch.checkout, "artifacts/krew")];
    const [manifest, archive] = [join(files, "fairlead.yaml"), join(files, krewArchiveName(version))];
    const program = await installPlugin(scratch.runner, manifest, archive, join(scratch.dir, "krew"));
    const said = await scratch.inCheckout([program, "--version"]);
    if (said !== `Fairlead v${version}\n`) throw new Error(`${program} --version says ${said}`);
    return { said: said.trim(), installs: [{ by: "kubectl plugin's manifest", ran: "kubectl-fairlead --version" }] };
  },
};

const notes: RehearsalStep = {
  name: "notes of the release",
  run: async ({ scratch }) => {
    const lines = (await release(scratch, "notes")).trim().split("\n");
    return { said: `${lines.length} lines, from ${JSON.stringify(lines[0])}` };
  },
};

export const ARTIFACT_STEPS: readonly RehearsalStep[] = [image, chart, plugin, notes];

/** What the workflow reads of a push. */
async function push({ scratch, images }: Rehearsal, command: string): Promise<{ name: string; digest: string }> {
  const said = await release(scratch, command, "--plain-http", "--to", `${images.at}/fairlead-dev`);
  const [, name, digest] = /^name=(.+)\ndigest=(sha256:[0-9a-f]{64})$/m.exec(said) ?? [];
  if (name === undefined || digest === undefined) throw new Error(`pnpm release ${command} printed ${said}`);
  return { name, digest };
}
