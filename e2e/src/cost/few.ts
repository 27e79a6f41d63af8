import type { KernelVersion } from "@fairlead/lab/qemu/kernel-versions";
import { goldenScenario } from "@fairlead/testkit";
import type { GuestCounts } from "./counted.ts";
import { fairleadTable } from "./fairlead.ts";
import { count } from "./measure.ts";
import { DEVICES } from "./network.ts";
import { kubeProxyTable } from "./recorded.ts";
import { SUBJECTS, type Unit } from "./units.ts";

/** A recording of kube-proxy with one service for TCP and UDP, and what Fairlead makes of the same objects. */
const SCENARIO = "02-dns-tcp-udp";
const SERVICE = { address: "10.96.0.10", port: 53, endpoints: ["10.144.1.5", "172.30.23.2"] };

/** Counts in one guest, with what the repository has: kube-proxy itself is not needed. */
export async function countFew(version: KernelVersion, units: readonly Unit[]): Promise<GuestCounts> {
  const { node, objects, nft } = goldenScenario(SCENARIO);
  const way = "one node";
  const subjects = [
    kubeProxyTable(SUBJECTS.base, nft),
    await fairleadTable(SUBJECTS.fast, "fast-path", objects, DEVICES[way], node),
  ];
  return (await count({ version, way, service: SERVICE, subjects, units })).counts;
}
