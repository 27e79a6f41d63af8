import { join } from "node:path";
import { parseSlicesArguments } from "@fairlead/config";
import { beforeAll, expect, test } from "vitest";
import { agentVersion } from "../src/agent-version.ts";
import { SLICES_NAME } from "../src/image/agent-layer.ts";
import { deployDir } from "../src/paths.ts";
import { ownManifests } from "./support/kustomization.ts";
import { type Manifest, only } from "./support/manifests.ts";

let manifests: Manifest[] = [];
beforeAll(async () => {
  manifests = await ownManifests(join(deployDir, "overlays", "slices"));
});
const pod = () => only(manifests, "Deployment")["spec"].template.spec;

test("it starts the controller, with its defaults, at the port that is asked for its health", async () => {
  const [{ command, args = [], image, ports }] = pod().containers;
  expect(command).toEqual([SLICES_NAME]);
  expect(image).toBe(`ghcr.io/fairlead-dev/fairlead:${await agentVersion()}`);
  const parsed = parseSlicesArguments(args, "0");
  if (parsed.kind !== "run") throw new Error(parsed.kind);
  expect(parsed.config.metricsBindAddress.port).toBe(ports[0].containerPort);
  const { namespace, name } = parsed.config.election ?? {};
  const lease = only(manifests, "Role");
  expect(lease.metadata.namespace).toBe(namespace);
  expect(lease["rules"][1].resourceNames).toEqual([name]);
});

test("it has no right of the node's, and none to write but slices, Events and its Lease", () => {
  expect(pod()).toMatchObject({ securityContext: { runAsNonRoot: true } });
  expect(pod().hostNetwork).toBeUndefined();
  expect(pod().containers[0].securityContext).toEqual({
    allowPrivilegeEscalation: false,
    readOnlyRootFilesystem: true,
    capabilities: { drop: ["ALL"] },
  });
  type Rule = { readonly resources: readonly string[]; readonly verbs: readonly string[] };
  const rules: readonly Rule[] = only(manifests, "ClusterRole")["rules"];
  const writing = rules.filter(({ verbs }) => verbs.some((verb) => verb !== "list" && verb !== "watch"));
  expect(writing.map(({ resources, verbs }) => `${resources}: ${verbs}`)).toEqual([
    "endpointslices: list,watch,create,update,delete",
    "events: create",
  ]);
});
