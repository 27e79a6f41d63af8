import type { Lab } from "@fairlead/lab/plain/lab";
import { conformance } from "./conformance.ts";
import { crowdSpecs } from "./crowd-specs.ts";
import { drainSpecs } from "./drain-specs.ts";
import { faultSpecs } from "./fault-specs.ts";
import { flowSpecs } from "./flow-specs.ts";
import { foundingSpecs } from "./founding-specs.ts";
import { golden } from "./golden.ts";
import { meaning } from "./meaning.ts";
import { resetSpecs } from "./reset-specs.ts";
import { shadowSpecs } from "./shadow-specs.ts";
import { type Suite, suiteOf } from "./suite.ts";
import { verify } from "./verify-specs.ts";

const nothingLeft = async (_: Lab) => {};

/** The real kube-proxy, where the machine has one. */
const { FAIRLEAD_KUBE_PROXY: kubeProxy = "" } = process.env;

export const suites: ReadonlyMap<string, Suite> = new Map([
  ["meaning", meaning],
  ["conformance", conformance],
  ["golden", golden],
  ["founding", suiteOf(foundingSpecs, nothingLeft)],
  ["faults", suiteOf(faultSpecs, nothingLeft)],
  ["drain", suiteOf(drainSpecs, nothingLeft)],
  ["reset", suiteOf(resetSpecs, nothingLeft)],
  ["verify", verify],
  ["crowds", suiteOf(crowdSpecs(kubeProxy), nothingLeft)],
  ["flows", suiteOf(flowSpecs, nothingLeft)],
  ...(kubeProxy === "" ? [] : [["shadow", suiteOf(shadowSpecs(kubeProxy), nothingLeft)] as const]),
]);
