import type { Spec } from "../spec.ts";
import { claims } from "./claims.ts";
import { hostileComments } from "./comments.ts";
import { credentials } from "./credentials.ts";
import { datagrams } from "./datagrams.ts";
import { heldOpen } from "./held-open.ts";
import { inspector } from "./inspector.ts";
import { lists } from "./lists.ts";
import { hostileManifests } from "./manifests.ts";
import { manyEndpoints } from "./many-endpoints.ts";
import { otherWriters } from "./other-writers.ts";
import { pipelines } from "./pipelined.ts";
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
