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
  "fast-path-kernel":
    "changes the configuration or the machine's kernel, and this ground's kernel need not have flowtables",
  "fast-path-failed": "no kernel here fails the test of its flowtables",
  "fast-path-test": "needs an agent without CAP_SYS_ADMIN on a kernel with flowtables, which this ground need not have",
  "fast-path-devices": "changes the configuration, and needs a kernel with flowtables, which this ground need not have",
  "fast-path-device": "changes the configuration, and needs a kernel with flowtables, which this ground need not have",
  "fast-path-other": "needs a kernel with flowtables, which this ground need not have",
  "calico-maps": "pinned maps are the machine's own file system, which no test touches",
  "kube-ovn-mode": "needs ipvs mode's rules; the multi-cni specs carry it in a guest that has them",
  "excluded-clients": "only ipvs mode cannot distinguish clients, and this ground's kernel need not have it",
  underlay:
    "begins with “nothing”, and is about learned CIDRs: the networks specs have one on the nodes' own addresses",
  "two-sources": "asks two networks' owners which of them is to give a range away; nothing on a node changes",
  "leave-isolated": "needs kube-ovn or OVN-Kubernetes; the command's test follows it on their objects",
  "kept-cidrs": "begins with “nothing”; the networks specs wait for the removal delay",
};
