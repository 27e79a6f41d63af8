import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { createRunner } from "@fairlead/kernel";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { deployDir } from "../src/paths.ts";
import { type Manifest, parseManifests } from "../test/support/manifests.ts";
import { type ApiServer, startApiServer } from "./api-server.ts";

/** Every manifest as a real API server takes it; KUBEBUILDER_ASSETS has etcd and kube-apiserver. */
const assets = process.env["KUBEBUILDER_ASSETS"];
if (assets === undefined) throw new Error("KUBEBUILDER_ASSETS must name a folder with etcd and kube-apiserver");
const runner = createRunner();
let server: ApiServer;

beforeAll(async () => {
  server = await startApiServer(assets);
});
afterAll(() => server?.dispose());

const kustomize = (folder: string) => async () =>
  (await runner.run(["kustomize", "build", join(deployDir, folder)])).stdout;
const helm =
  (...set: readonly string[]) =>
  async () => {
    const chart = ["template", "fairlead", join(deployDir, "helm/fairlead"), "--namespace=kube-system"];
    const values = ["apiServer=https://192.0.2.1:6443", ...set].flatMap((value) => ["--set", value]);
    return (await runner.run(["helm", ...chart, "--kube-version=1.34.0", ...values])).stdout;
  };

const overlays = await readdir(join(deployDir, "overlays"));

describe.each<[string, () => Promise<string>]>([
  ["base", kustomize("base")],
  ...overlays.map((name): [string, () => Promise<string>] => [`overlay ${name}`, kustomize(`overlays/${name}`)]),
  ["chart", helm()],
  ["chart, privileged", helm("hardened=false", "podAnnotations.a=b", "podLabels.c=d", "imagePullSecrets[0].name=pull")],
  ["the founding case", () => readFile(join(deployDir, "test/fixtures/founding-case.yaml"), "utf8")],
])("%s", (_name, render) => {
  test("is accepted as it is", async () => {
    const manifests = parseManifests(await render());
    expect(manifests.length).toBeGreaterThan(1);
    for (const manifest of manifests)
      expect([manifest.kind, await server.dryRun(manifest)]).toEqual([manifest.kind, undefined]);
  });
});

test("a misspelled field is refused", async () => {
  const manifest: Manifest = {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name: "x", namespace: "kube-system" },
    dataa: {},
  };
  expect(await server.dryRun(manifest)).toContain("dataa");
});
