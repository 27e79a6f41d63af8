import type { Runner } from "@fairlead/kernel";
import { type IpvsTarget, ipvsFaults } from "@fairlead/lab/faults";
import { NODE_A, webA1, workload } from "@fairlead/testkit";
import type { KernelDamage } from "./damages.ts";

const DEVICE = "kube-ipvs0";
const { clusterIP, port, nodePort } = workload(1, { endpoints: [] });
const endpoint = webA1.addresses.IPv4;
const address = clusterIP.IPv4;
const target: IpvsTarget = { address, port, destination: `${endpoint}:8080`, other: "10.96.77.7" };

/** The service that keeps its clients. */
const { clusterIP: keeping } = workload(4, { endpoints: [] });
const kept = `${keeping.IPv4}:${port}`;

const ipvs = (what: string, kind: string, script: string): KernelDamage => ({
  what,
  kind,
  inflict: async (runner) => void (await runner.run(["sh", "-ec", script])),
});

/** To the services of `damagedObjects`: each kind of object that ipvs mode has. */
export const IPVS_DAMAGES: readonly KernelDamage[] = [
  ipvs("a virtual server is missing", "missing", ipvsFaults.serverRemoved(target)),
  ipvs("a service that is gone is left", "extra", ipvsFaults.serverAdded(target)),
  ipvs("a node port is missing", "missing", `ipvsadm -D -t ${NODE_A.addresses.IPv4}:${nodePort}`),
  ipvs("a destination is missing", "endpoints", ipvsFaults.destinationRemoved(target)),
  ipvs("a destination too many", "endpoints", ipvsFaults.destinationAdded(target)),
  ipvs("a destination's weight is 0", "endpoints", `ipvsadm -e -t ${address}:${port} -r ${target.destination} -m -w 0`),
  ipvs(
    "a scheduler that heeds weights, and another weight",
    "shares",
    `${ipvsFaults.schedulerChanged(target)}; ${ipvsFaults.weightChanged(target)}`,
  ),
  ipvs("affinity is lost", "affinity", `ipvsadm -E -t ${kept} -s rr`),
  ipvs("affinity's time is another", "affinity", `ipvsadm -E -t ${kept} -s rr -p 60`),
  ipvs("a set's member is missing", "masquerade", ipvsFaults.entryRemoved(target)),
  ipvs("a hairpin's member is missing", "masquerade", `ipset del KUBE-LOOP-BACK ${endpoint},tcp:8080,${endpoint}`),
  ipvs("a set is emptied", "verdict", ipvsFaults.setEmptied()),
  ipvs("all source ranges are missing", "verdict", "ipset flush KUBE-LOAD-BALANCER-SOURCE-CIDR"),
  ipvs("source ranges let everybody in", "verdict", "iptables -F KUBE-SOURCE-RANGES-FIREWALL"),
  ipvs("an address of kube-ipvs0 is missing", "missing", ipvsFaults.addressDeleted(target)),
  ipvs("kube-ipvs0 is gone", "missing", ipvsFaults.deviceDeleted()),
  ipvs("a rule is missing", "masquerade", ipvsFaults.ruleRemoved()),
  ipvs(
    "a rule of others' stands in the way",
    "masquerade",
    `iptables -t nat -I KUBE-SERVICES 1 -d ${address} -j RETURN`,
  ),
  ipvs("the jump of what comes in is gone", "masquerade", "iptables -t nat -F PREROUTING"),
  ipvs("all virtual servers are gone", "missing", ipvsFaults.serversCleared()),
];

/** Brings virtual servers, members of sets, addresses and rules back to what they are now. */
export async function ipvsAsNow(runner: Runner): Promise<() => Promise<void>> {
  const text = async (...argv: [string, ...string[]]) => (await runner.run(argv)).stdout;
  const servers = await text("ipvsadm", "--save", "-n");
  const sets = await text("ipset", "save");
  const rules = await text("iptables-save");
  const listing = await text("ip", "-oneline", "address", "show", "dev", DEVICE);
  const bound = Array.from(listing.matchAll(/ inet6? (\S+)/g), ([, one]) => `address replace ${one} dev ${DEVICE}`);
  return async () => {
    await runner.run(["ipvsadm", "--clear"]);
    await runner.run(["ipvsadm", "--restore"], { input: servers });
    await runner.run(["ipset", "-exist", "restore"], { input: sets });
    await runner.run(["iptables-restore"], { input: rules });
    // That the device is there already is no failure.
    const lines = [`link add ${DEVICE} type dummy`, ...bound, ""];
    await runner.run(["sh", "-c", "ip -force -batch - || true"], { input: lines.join("\n") });
  };
}
