import type { DifferenceKind } from "../../../../src/index.ts";
import type { MODES } from "./recorded.ts";

/** Something that is wrong in what kube-proxy wrote. */
export interface Damage {
  readonly what: string;
  readonly mode: (typeof MODES)[number];
  /** The recording that it is done to. */
  readonly scenario: string;
  readonly change: (text: string) => string;
  readonly expected: DifferenceKind;
}

const LB = "09-loadbalancer";
const RANGES = "10-lb-source-ranges";
const AFFINITY = "12-affinity";
const EMPTY = "04-no-endpoints";

const without = (line: RegExp) => (text: string) => text.replace(line, "");
const instead = (part: RegExp | string, by: string) => (text: string) => text.replace(part, by);

type Row = readonly [what: string, scenario: string, change: Damage["change"], expected: DifferenceKind];

const iptables: readonly Row[] = [
  ["an endpoint is missing", LB, without(/^-A KUBE-SVC-7TV.*lb -> 10\.144\.1\.5.*\n/m), "endpoints"],
  [
    "an endpoint too many",
    LB,
    instead(/^(-A KUBE-SVC-7TV.*-j )KUBE-SEP-X6I\S+/m, "$1KUBE-SEP-Z2MNHJ5OI4BMQIBS"),
    "endpoints",
  ],
  ["an endpoint's weight", LB, instead("0.50000000000", "0.25000000000"), "shares"],
  ["an endpoint's address", LB, instead("10.144.1.5:8080\n", "10.144.9.9:8080\n"), "endpoints"],
  ["an endpoint's port", LB, instead("to-destination 10.144.1.5:8080", "to-destination 10.144.1.5:8081"), "endpoints"],
  ["a ClusterIP is missing", LB, without(/^-A KUBE-SERVICES -d 10\.96\.1\.9.*\n/m), "missing"],
  ["a load-balancer address is missing", LB, without(/^-A KUBE-SERVICES -d 203\.0\.113\.9.*\n/m), "missing"],
  ["a node port is missing", LB, without(/^-A KUBE-NODEPORTS -p tcp.*\n/m), "missing"],
  ["node ports are not asked", LB, without(/^-A KUBE-SERVICES .*-j KUBE-NODEPORTS\n/m), "missing"],
  ["masquerading is gone", LB, without(/^-A KUBE-POSTROUTING .*MASQUERADE.*\n/m), "masquerade"],
  ["the mark of traffic from outside is gone", LB, without(/^-A KUBE-EXT.*KUBE-MARK-MASQ\n/m), "masquerade"],
  ["the mark sets nothing", LB, without(/^-A KUBE-MARK-MASQ .*\n/m), "masquerade"],
  ["a hairpin's mark is gone", LB, without(/^-A KUBE-SEP-45K\S+ -s .*\n/m), "masquerade"],
  ["the jump of packets that come in is gone", LB, without(/^-A PREROUTING .*\n/m), "missing"],
  [
    "the jump of the node's own packets is gone",
    LB,
    without(/^-A OUTPUT .*comment "kubernetes service portals" -j KUBE-SERVICES\n(?=-A POSTROUTING)/m),
    "missing",
  ],
  [
    "a rule of others' in the way",
    LB,
    instead(/^-A KUBE-SERVICES -d 10\.96\.1\.9/m, "-A KUBE-SERVICES -d 10.96.1.9/32 -j RETURN\n$&"),
    "missing",
  ],
  ["a rejection is missing", EMPTY, without(/^-A KUBE-SERVICES .*REJECT.*\n/m), "verdict"],
  ["a node port's rejection is missing", EMPTY, without(/^-A KUBE-EXTERNAL-SERVICES .*REJECT.*\n/m), "verdict"],
  ["source ranges let all clients in", RANGES, without(/^-A KUBE-PROXY-FIREWALL .*\n/m), "verdict"],
  ["a source range is missing", RANGES, without(/^-A KUBE-FW\S+ -s 198\.51\.100\.0\/24.*\n/m), "verdict"],
  ["affinity is lost", AFFINITY, (text) => text.replace(/^-A KUBE-SVC\S+ .*--rcheck.*\n/gm, ""), "affinity"],
  ["one endpoint's affinity is lost", AFFINITY, without(/^-A KUBE-SVC\S+ .*--rcheck.*\n/m), "affinity"],
  ["affinity's time is another", AFFINITY, (text) => text.replaceAll("--seconds 600", "--seconds 60"), "affinity"],
  ["affinity lasts too long", AFFINITY, (text) => text.replaceAll("--seconds 600", "--seconds 6000"), "affinity"],
  [
    "a service that is gone is left",
    LB,
    instead(
      /^-A KUBE-SERVICES -d 10\.96\.1\.9/m,
      "-A KUBE-SERVICES -d 10.96.7.7/32 -p tcp -m tcp --dport 81 -j KUBE-SVC-7TVXROIT6UXCX2AG\n$&",
    ),
    "extra",
  ],
  [
    "a node port that is gone is left",
    LB,
    instead(
      /^-A KUBE-NODEPORTS -p tcp.*\n/m,
      "-A KUBE-NODEPORTS -p tcp -m tcp --dport 31000 -j KUBE-EXT-7TVXROIT6UXCX2AG\n$&",
    ),
    "extra",
  ],
  ["the tables are flushed", LB, () => "*nat\n:PREROUTING ACCEPT [0:0]\nCOMMIT\n", "missing"],
];

const nftables: readonly Row[] = [
  [
    "an endpoint is missing",
    LB,
    instead(/mod 2 map \{ 0 : (\S+ \. \d+), 1 : \S+ \. \d+ \}/, "mod 1 map { 0 : $1 }"),
    "endpoints",
  ],
  [
    "an endpoint's weight",
    LB,
    instead(/mod 2 map \{ 0 : (\S+ \. \d+), 1 : (\S+ \. \d+) \}/, "mod 3 map { 0 : $1, 1 : $2, 2 : $2 }"),
    "shares",
  ],
  ["an endpoint's address", LB, instead("0 : 10.144.1.5 . 8080", "0 : 10.144.9.9 . 8080"), "endpoints"],
  ["an endpoint's port", LB, instead("0 : 10.144.1.5 . 8080", "0 : 10.144.1.5 . 8081"), "endpoints"],
  ["a ClusterIP is missing", LB, without(/10\.96\.1\.9 \. tcp \. 80 [^,}]*goto[^,}]*,\s*/), "verdict"],
  ["a load-balancer address is missing", LB, without(/203\.0\.113\.9 \. tcp \. 80 [^,}]*goto[^,}]*,\s*/), "missing"],
  ["a node port is missing", LB, without(/elements = \{ tcp \. 30109 [^}]*\}/), "missing"],
  ["node ports are not asked", LB, without(/^.*vmap @service-nodeports\n/m), "missing"],
  ["masquerading is gone", LB, without(/^.*meta mark & .*masquerade.*\n/m), "masquerade"],
  ["the mark of traffic from outside is gone", LB, without(/^.*comment "masquerade"\n/m), "masquerade"],
  ["a hairpin's element is gone", LB, without(/elements = \{ 10\.144\.1\.5 \. 10\.144\.1\.5[^}]*\}/), "masquerade"],
  [
    "the jump of packets that come in is gone",
    LB,
    without(/(?<=chain nat-prerouting \{\n.*\n)\t\tjump services\n/),
    "verdict",
  ],
  ["a node port's rejection is missing", EMPTY, without(/elements = \{ tcp \. 30104 [^}]*\}/), "verdict"],
  ["source ranges let all clients in", RANGES, without(/^.*ip saddr != \{.*drop\n/m), "verdict"],
  [
    "a source range is missing",
    RANGES,
    instead("10.201.0.0/24, 198.51.100.0/24, 203", "10.201.0.0/24, 203"),
    "verdict",
  ],
  ["affinity is lost", AFFINITY, (text) => text.replace(/^\t\tip saddr @affinity.*\n/gm, ""), "affinity"],
  ["affinity's time is another", AFFINITY, (text) => text.replaceAll("timeout 10m", "timeout 1m"), "affinity"],
  [
    "a service that is gone is left",
    LB,
    instead("10.96.1.9 . tcp . 80", "10.96.7.7 . tcp . 81 : goto service-2QRHZV4L-default/kubernetes/tcp/https, $&"),
    "extra",
  ],
  ["the table is gone", LB, () => "", "missing"],
];

const ipvs: readonly Row[] = [
  ["an endpoint is missing", LB, (text) => text.replaceAll(/^-a .*10\.144\.1\.5.*\n/gm, ""), "endpoints"],
  [
    "an endpoint's weight",
    LB,
    (text) => text.replaceAll("-s rr", "-s wrr").replaceAll(/(^-a .*10\.144\.1\.5.*-w )1/gm, "$13"),
    "shares",
  ],
  ["an endpoint drains", LB, (text) => text.replaceAll(/(^-a .*10\.144\.1\.5.*-w )1/gm, "$10"), "endpoints"],
  ["an endpoint's address", LB, instead("-r 10.144.1.5:8080", "-r 10.144.9.9:8080"), "endpoints"],
  ["a virtual server is missing", LB, without(/^-A -t 10\.96\.1\.9:80.*\n(?:-a .*\n)*/m), "missing"],
  ["a service address is missing", LB, without(/^.*inet 10\.96\.1\.9\/.*\n/m), "missing"],
  ["a node port is missing", LB, without(/^-A -t 10\.201\.0\.60:30109.*\n(?:-a .*\n)*/m), "missing"],
  ["masquerading is gone", LB, without(/^-A KUBE-POSTROUTING .*requiring SNAT.*\n/m), "masquerade"],
  ["a hairpin's member is gone", LB, without(/^add KUBE-LOOP-BACK .*\n/m), "masquerade"],
  ["a load balancer's member is gone", LB, without(/^add KUBE-LOAD-BALANCER 203.*\n/m), "masquerade"],
  ["a set is emptied", LB, (text) => text.replace(/^add KUBE-CLUSTER-IP .*\n/gm, ""), "verdict"],
  ["the jump of packets that come in is gone", LB, without(/^-A PREROUTING .*KUBE-SERVICES\n/m), "masquerade"],
  ["the jump of the node's own packets is gone", LB, without(/^-A OUTPUT .*KUBE-SERVICES\n/m), "masquerade"],
  [
    "a rule of others' in the way",
    LB,
    instead(/^-A KUBE-SERVICES /m, "-A KUBE-SERVICES -d 10.96.1.9/32 -j RETURN\n$&"),
    "masquerade",
  ],
  ["source ranges let all clients in", RANGES, without(/^-A KUBE-SOURCE-RANGES-FIREWALL -j DROP\n/m), "verdict"],
  [
    "all source ranges are missing",
    RANGES,
    (text) => text.replace(/^add KUBE-LOAD-BALANCER-SOURCE-CIDR .*\n/gm, ""),
    "verdict",
  ],
  ["a source range is missing", RANGES, without(/^add KUBE-LOAD-BALANCER-SOURCE-CIDR .*198.*\n/m), "verdict"],
  ["affinity is lost", AFFINITY, instead(" -p 600", ""), "affinity"],
  ["affinity's time is another", AFFINITY, instead(" -p 600", " -p 60"), "affinity"],
  [
    "a virtual server that is gone is left",
    LB,
    instead(
      /^-A -t 10\.96\.1\.9:80.*\n/m,
      "-A -t 10.96.7.7:81 -s rr\n-a -t 10.96.7.7:81 -r 10.144.1.5:8080 -m -w 1\n$&",
    ),
    "extra",
  ],
];

const rowsOf = (mode: Damage["mode"], rows: readonly Row[]): readonly Damage[] =>
  rows.map(([what, scenario, change, expected]) => ({ what, mode, scenario, change, expected }));

export const damages: readonly Damage[] = [
  ...rowsOf("iptables", iptables),
  ...rowsOf("nftables", nftables),
  ...rowsOf("ipvs", ipvs),
];
