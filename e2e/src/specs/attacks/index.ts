import type { Spec } from "../spec.ts";
import { credentials, datagrams, lists } from "./api-servers.ts";
import { claims, hostileManifests, manyEndpoints } from "./manifests.ts";
import { hostileComments, otherWriters } from "./other-writers.ts";
import { heldOpen, inspector, pipelines } from "./ports.ts";
import { badTools } from "./tools.ts";

/** What others do to an agent on purpose, or could. */
export const attacks: readonly Spec[] = [
  datagrams,
  ...hostileComments,
  ...pipelines,
  ...heldOpen,
  ...hostileManifests,
  inspector,
  ...credentials,
  ...lists,
  claims,
  manyEndpoints,
  otherWriters,
  ...badTools,
];
