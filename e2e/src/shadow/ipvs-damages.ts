import type { Runner } from "@fairlead/kernel";
import { webA1, workload } from "@fairlead/testkit";
import { type IpvsTarget, ipvsFaults } from "../faults/ipvs.ts";
import type { KernelDamage } from "./damages.ts";

const { clusterIP, port } = workload(1, { endpoints: [] });
const target: IpvsTarget = {
  address: clusterIP.IPv4,
  port,
  destination: `${webA1.addresses.IPv4}:8080`,
  other: "10.96.77.7",
};

const ipvs = (what: string, kind: string, script: string): KernelDamage => ({
  what,
  kind,
  inflict: async (runner) => void (await runner.run(["sh", "-ec", script])),
});

/** To the services of `damagedObjects`: each kind of object that ipvs mode has. */
export const IPVS_DAMAGES: readonly KernelDamage[] = [
  ipvs("a virtual server is missing", "missing", ipvsFaults.serverRemoved(target)),
  ipvs("a service that is gone is left", "extra", ipvsFaults.serverAdded(target)),
  ipvs("a destination is missing", "endpoints", ipvsFaults.destinationRemoved(target)),
  ipvs("a destination too many", "endpoints", ipvsFaults.destinationAdded(target)),
  ipvs("a set's member is missing", "masquerade", ipvsFaults.entryRemoved(target)),
  ipvs("an address of kube-ipvs0 is missing", "missing", ipvsFaults.addressDeleted(target)),
  ipvs("a rule is missing", "masquerade", ipvsFaults.ruleRemoved()),
  ipvs("all virtual servers are gone", "missing", ipvsFaults.serversCleared()),
];

/** Brings virtual servers, members of sets, addresses and rules back to what they are now. */
export async function ipvsAsNow(runner: Runner): Promise<() => Promise<void>> {
  const text = async (...argv: [string, ...string[]]) => (await runner.run(argv)).stdout;
  const servers = await text("ipvsadm", "--save", "-n");
  const sets = await text("ipset", "save");
  const rules = await text("iptables-save");
  return async () => {
    await runner.run(["ipvsadm", "--clear"]);
    await runner.run(["ipvsadm", "--restore"], { input: servers });
    await runner.run(["ipset", "-exist", "restore"], { input: sets });
    await runner.run(["iptables-restore"], { input: rules });
    await runner.run(["ip", "address", "replace", `${target.address}/32`, "dev", "kube-ipvs0"]);
  };
}
