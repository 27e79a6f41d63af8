import { each } from "../every-node.ts";
import { needs, onlyIn } from "../needs.ts";
import type { Scene } from "../scene.ts";
import type { Spec } from "../spec.ts";
import { type Connectivity, complaintsOf, openConnectivity } from "./run-connectivity.ts";

/** Rules that are deleted on every node, and the service that each of them is of. */
const DELETED: readonly (readonly [service: string, what: string, line: string])[] = [
  ["web", "the ClusterIP's", "-A KUBE-SERVICES .*/web:tcp cluster IP"],
  ["web", "the ClusterIP's, UDP", "-A KUBE-SERVICES .*/web:udp cluster IP"],
  ["web", "the node port's", '-A KUBE-NODEPORTS .*/web:tcp"'],
  ["web", "the external IP's", "-A KUBE-SERVICES .*/web:tcp external IP"],
  ["web", "the load balancer's", "-A KUBE-SERVICES .*/web:tcp loadbalancer IP"],
  [
    "web",
    "the masquerading of what comes from outside",
    "-A KUBE-EXT-.* for [^ ]*/web:tcp external.*-j KUBE-MARK-MASQ",
  ],
  ["web-local", "the node port's, Local", '-A KUBE-NODEPORTS .*/web-local:tcp"'],
  ["web-internal", "its endpoint's", "-A KUBE-SVL-.*/web-internal:tcp -> "],
  ["web-sticky", "affinity's", "-A KUBE-SVC-.*/web-sticky:tcp -> .*--rcheck"],
  ["web-headless", "the cluster DNS's", "-A KUBE-SERVICES .*kube-system/kube-dns:dns cluster IP"],
  ["web-hairpin", "the masquerading of a hairpin", "-A KUBE-SEP-.*/web-hairpin:tcp.*-j KUBE-MARK-MASQ"],
];

const KEPT = ["--keep", "--no-update", "--patience"] as const;

/** What was deleted comes back with all else. */
const SAVE = 'iptables-save -t nat > "$1"';
const RESTORE = 'iptables-restore < "$1"';
const DELETE = `
  lines=$(iptables-save -t nat | grep -E -- "$1" | sed 's/^-A/-D/') || { echo "no rule has $1" >&2; exit 3; }
  printf '*nat\\n%s\\nCOMMIT\\n' "$lines" | iptables-restore --noflush
`;

/** The test of an administrator sees what is missing, and names the service. */
export const deletedByHand: Spec = {
  name: "fairlead connectivity: each of eleven rules deleted by hand is seen, with its service",
  suite: "self-test",
  about: ["cli"],
  eachFamily: false,
  alone: true,
  unfit: (shape, family) =>
    needs("kubelet")(shape) ??
    needs("dns", "apt-get install dnsmasq-base")(shape) ??
    onlyIn(["iptables"], "deletes rules of iptables mode")(shape) ??
    (family === "IPv4" ? undefined : "deletes rules of IPv4"),
  run: async (scene) => {
    const connectivity = await openConnectivity(scene);
    const whole = complaintsOf(await connectivity.run(...KEPT, "20"));
    if (whole.length > 0) throw new Error(`wanted no complaint; came\n${whole.join("\n")}`);
    // From now on nothing repairs anything; agents go on again before anything is asked of them.
    const goOn = () => each(scene, ({ agent }) => agent.signal("SIGCONT"));
    scene.later(() => each(scene, ({ agent }) => agent.restart()));
    await each(scene, ({ agent }) => agent.signal("SIGSTOP"));
    try {
      await seenWithout(scene, connectivity);
    } finally {
      await goOn();
    }
    return { rules: String(DELETED.length) };
  },
};

/** Deletes one after the other, and puts each back. @throws Error for one that is not seen as it should be */
async function seenWithout(scene: Scene, connectivity: Connectivity): Promise<void> {
  const file = (name: string) => `/tmp/fairlead-e2e-${process.pid}-${name}.rules`;
  scene.later(() => each(scene, async ({ run, name }) => void (await run(["rm", "-f", file(name)]))));
  await each(scene, async ({ run, name }) => void (await run(["sh", "-c", SAVE, "sh", file(name)])));
  for (const [service, what, line] of DELETED) {
    await each(scene, async ({ run }) => void (await run(["sh", "-c", DELETE, "sh", line])));
    const complaints = complaintsOf(await connectivity.run(...KEPT, "2"));
    const others = complaints.filter((one) => !one.startsWith(`${service}: `));
    if (complaints.length === 0) throw new Error(`wanted a complaint of ${service} without ${what} rule; came none`);
    if (others.length > 0)
      throw new Error(`wanted complaints of ${service} only, without ${what} rule; came\n${others.join("\n")}`);
    await each(scene, async ({ run, name }) => void (await run(["sh", "-c", RESTORE, "sh", file(name)])));
  }
}
