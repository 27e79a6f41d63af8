import type { WindowsCase } from "@fairlead/testkit/windows";

/** A difference to kube-proxy that is meant. */
interface Difference {
  /** What Fairlead does, and where upstream decides otherwise: both as docs/windows.md has them. */
  readonly name: string;
  readonly upstream: string;
  /** Whether it is why an object differs in a recording; else why none can show it. */
  readonly seen: ((found: SeenDifference) => boolean) | string;
}

interface SeenDifference {
  readonly of: WindowsCase;
  readonly what: string;
  /** `- ` in front: kube-proxy has it; `+ `: Fairlead has it. */
  readonly line: string;
}

/** A line of the case in which upstream is asked about it. */
const otherwise =
  (line: RegExp) =>
  ({ of, line: found }: SeenDifference): boolean =>
    of.name === "otherwise" && line.test(found);

/** Steps after which a load balancer's addresses have no ready endpoint that their policy lets them have. */
const WITHOUT_READY = ["only the terminating one", "it keeps no endpoint here"];

/** Node ports and addresses of services with the policy Local or the annotation preserve-destination. */
const AT_LOCAL = /^[-+] balancer (?:\* 30(?:080|091|092)\/6|(?:198\.51\.100|203\.0\.113)\.(?:21|30) 80\/6) /;

export const DIFFERENCES: readonly Difference[] = [
  {
    name: "With only a terminating endpoint left, node ports and external addresses lose their load balancer",
    upstream: "proxier.go:1502",
    seen: ({ of, what, line }) =>
      of.hns.Major > 13 && what === "only the terminating one" && /^- balancer (?:\* 30090|203\.0\.113\.9 )/.test(line),
  },
  {
    name: "Then nothing leads probes of the address to the node either (`forwardHealthCheckVip`)",
    upstream: "proxier.go:1724",
    seen: ({ what, line }) => WITHOUT_READY.includes(what) && /^- balancer 198\.51\.100\.\d+ 10256\//.test(line),
  },
  {
    name: "Probes of IPv6 addresses have load balancers of IPv6",
    upstream: "proxier.go:1739",
    seen: ({ of, line }) => of.name === "l2bridge-dual-forward" && /^[-+] balancer 2001:db8::7 10256\//.test(line),
  },
  {
    name: "A remote endpoint goes with the last load balancer that leads to it",
    upstream: "proxier.go:1802",
    seen: ({ of, line }) => of.steps.length > 3 && /^- endpoint 10\.244\.2\.2[01] /.test(line),
  },
  {
    name: "Load balancers that fit stay at a start, and those of other programs always do",
    upstream: "proxier.go:753",
    seen: ({ of, line }) => of.name === "l2bridge-kept" && line.startsWith("+ balancer 192.168.0.1 "),
  },
  {
    name: "Remote endpoints to which nothing leads go at a start",
    upstream: "proxier.go:1802",
    seen: ({ of, what, line }) =>
      /-kept$/.test(of.name) && what === "again, after changes" && line.startsWith("- endpoint "),
  },
  {
    name: "`publishNotReadyAddresses` has its effect",
    upstream: "proxier.go:1349",
    seen: otherwise(/^\+ balancer 10\.96\.0\.40 /),
  },
  {
    name: "A service with load-balancer addresses and no serving endpoint has no load balancer",
    upstream: "proxier.go:1343",
    seen: otherwise(/^- balancer (?:10\.96\.0|198\.51\.100)\.41 /),
  },
  {
    name: "Under `externalTrafficPolicy: Local` readiness of all endpoints decides about the ClusterIP",
    upstream: "proxier.go:1322",
    seen: otherwise(/^[-+] balancer 10\.96\.0\.42 /),
  },
  {
    name: "Remote endpoints are made only where a load balancer leads to them",
    upstream: "proxier.go:1337",
    seen: otherwise(/^- endpoint 10\.244\.2\.40 /),
  },
  {
    name: "Endpoints of a service with different ports: the last of the load balancer's own is used, and the log says so",
    upstream: "proxier.go:1366",
    seen: otherwise(/^[-+] balancer \* 30099\//),
  },
  {
    name: "A pod is this node's where its EndpointSlice says so",
    upstream: "proxier.go:1458",
    seen: otherwise(/^- balancer \* 30098\//),
  },
  {
    name: "`Local` and `preserve-destination` lead to this node on Windows without direct server return (HNS 10.0, 10.1) as well",
    upstream: "proxier.go:565",
    seen: ({ of, line }) => of.name === "l2bridge-old" && AT_LOCAL.test(line),
  },
  {
    name: "A change costs calls about its service only; a check every 30 s looks at ids",
    upstream: "proxier.go:1239",
    seen: "the objects are the same; test/fixtures/kube-proxy/cost.json has the calls",
  },
  {
    name: "A load balancer that another program removed, or a pod's endpoint that came late, is found by the check",
    upstream: "proxier.go:1281",
    seen: "nothing but the service proxy changes the HCN of the recordings",
  },
  {
    name: "The start waits for the network only",
    upstream: "proxier.go:765",
    seen: "the recordings have no times",
  },
  {
    name: "`--cleanup` removes load balancers that lead to the network, and remote endpoints",
    upstream: "cmd/kube-proxy/app/server_windows.go:119",
    seen: "kube-proxy ends with an error",
  },
  {
    name: "The annotation `winProxyOptimization` has no effect: changes are always made with the fewest calls",
    upstream: "proxier.go:555",
    seen: "the objects are the same",
  },
  {
    name: "What HCN refuses counts in `fairlead_refused_objects`, for as long as it is refused",
    upstream: "proxier.go:1524",
    seen: "the recordings have no metrics",
  },
  {
    name: "An overlay serves IPv4 only",
    upstream: "cmd/kube-proxy/app/server_windows.go:73",
    seen: "the overlays of the recordings are of IPv4",
  },
];
