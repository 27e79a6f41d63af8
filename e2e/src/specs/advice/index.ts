import type { AdviceName } from "@fairlead/inspect";
import { accessCases } from "./access-cases.ts";
import type { AdviceCase } from "./advice-case.ts";
import { kernelCases } from "./kernel-cases.ts";
import { networkCases } from "./network-cases.ts";
import { proxyCases } from "./proxy-cases.ts";

export const adviceCases: readonly AdviceCase[] = [...kernelCases, ...proxyCases, ...accessCases, ...networkCases];

/** Advices that no case follows, and why. */
export const NOT_FOLLOWED: Readonly<Partial<Record<AdviceName, string>>> = {
  "kernel-part": "what a kernel lacks is the machine's, and no test loads modules into it",
  "calico-maps": "pinned maps are the machine's own file system, which no test touches",
  "kube-ovn-mode": "needs ipvs mode's rules; the multi-cni specs carry it in a guest that has them",
  "excluded-clients": "only ipvs mode cannot distinguish clients, and this ground's kernel need not have it",
  underlay:
    "begins with “nothing”, and is about learned CIDRs: the networks specs have one on the nodes' own addresses",
  "two-sources": "asks two networks' owners which of them is to give a range away; nothing on a node changes",
  "kept-cidrs": "begins with “nothing”; the networks specs wait for the removal delay",
};
