import { describe, expect, test } from "vitest";
import {
  ClusterState,
  type FrontendKind,
  type ModeSemantics,
  Planner,
  type PlannerOptions,
  type Service,
  type SliceEndpoint,
  type SourceClass,
  type Treatment,
} from "../src/index.ts";
import {
  DRAINING,
  endpoint,
  fakeFilter,
  HERE,
  NO_SHORT_CUT,
  NOT_READY,
  OPTIONS,
  replan,
  SHORT_CUT,
  service,
  slice,
} from "./objects.ts";

/** A treatment in a word: the set, with + where it is masqueraded, or what else happens. */
function word(treatment: Treatment): string {
  if (treatment.verdict !== "proxy") return treatment.verdict;
  return `${treatment.set}${treatment.masquerade ? "+" : ""}`;
}

const CLASSES: readonly SourceClass[] = ["pod", "node", "outside"];

interface Setting {
  readonly fields: Partial<Service>;
  readonly endpoints: readonly SliceEndpoint[];
  readonly options?: Partial<PlannerOptions>;
}

/** How pods, the node and outside are treated at the service's frontend of a kind. */
function treated(kind: FrontendKind, { fields, endpoints, options }: Setting): string {
  const state = new ClusterState();
  state.upsertService(service("web", fields));
  state.upsertSlice(slice("web", endpoints));
  const planner = new Planner({ ...OPTIONS, ...options });
  replan(planner, state);
  const frontends = planner.plan("IPv4").groups.get("default/web/tcp")?.frontends ?? [];
  const words = frontends
    .filter((one) => one.kind === kind)
    .map((one) => CLASSES.map((from) => word(one.treatments[from])));
  return [...new Set(words.map((three) => three.join(" ")))].join(" | ");
}

const INTERNAL_LOCAL = { internalTrafficPolicy: "Local" } as const;
const EXTERNAL = {
  ports: [{ name: "", protocol: "TCP", port: 80, nodePort: 30_080 }],
  externalIPs: ["198.51.100.1"],
  loadBalancerIPs: ["203.0.113.1"],
} as const;
const EXTERNAL_LOCAL = { ...EXTERNAL, externalTrafficPolicy: "Local" } as const;

const here = [endpoint("10.144.1.5", HERE), endpoint("10.144.2.6")];
const elsewhere = [endpoint("10.144.2.6")];
const drainingHere = [endpoint("10.144.1.5", { ...HERE, ...DRAINING }), endpoint("10.144.2.6")];
const none = [endpoint("10.144.1.5", { ...HERE, ...NOT_READY })];
const NO_DETECTOR = { detectors: {} };
const MASQUERADE_ALL = { masqueradeAll: true };
/** Its endpoints are another network's. */
const THEIRS: Partial<PlannerOptions> = {
  filter: { decide: (...facts) => ({ ...fakeFilter().decide(...facts), masqueradesPods: true }) },
};

/** Treatments of a pod, the node and those outside, where local sources have a short cut and where they have none. */
type Row = readonly [
  endpoints: readonly SliceEndpoint[],
  shortCut: string,
  noShortCut: string,
  options?: Partial<PlannerOptions>,
];

function table(kinds: readonly FrontendKind[], fields: Partial<Service>, rows: Readonly<Record<string, Row>>): void {
  for (const [what, [endpoints, shortCut, noShortCut, options]] of Object.entries(rows)) {
    const modes: readonly [string, ModeSemantics, string][] = [
      ["with short cut", SHORT_CUT, shortCut],
      ["without (ipvs)", NO_SHORT_CUT, noShortCut],
    ];
    for (const [mode, semantics, expected] of modes) {
      for (const kind of kinds) {
        test(`${kind}: ${what}, ${mode}: ${expected}`, () => {
          expect(treated(kind, { fields, endpoints, options: { ...options, semantics } })).toBe(expected);
        });
      }
    }
  }
}

const EXTERNAL_KINDS = ["external-ip", "load-balancer", "node-port"] as const;

describe("internal policy Cluster", () => {
  table(
    ["cluster-ip"],
    {},
    {
      "endpoints here": [here, "cluster cluster+ cluster+", "cluster cluster+ cluster+"],
      "endpoints elsewhere": [elsewhere, "cluster cluster+ cluster+", "cluster cluster+ cluster+"],
      "masquerading all": [here, "cluster+ cluster+ cluster+", "cluster+ cluster+ cluster+", MASQUERADE_ALL],
      "endpoints of another network": [here, "cluster+ cluster+ cluster+", "cluster+ cluster+ cluster+", THEIRS],
      "endpoints of another network, no detector": [
        here,
        "cluster+ cluster+ cluster+",
        "cluster+ cluster+ cluster+",
        { ...NO_DETECTOR, ...THEIRS },
      ],
      "no detector": [here, "cluster cluster cluster", "cluster cluster cluster", NO_DETECTOR],
      "no detector, masquerading all": [
        here,
        "cluster+ cluster+ cluster+",
        "cluster+ cluster+ cluster+",
        { ...NO_DETECTOR, ...MASQUERADE_ALL },
      ],
      "no endpoints": [none, "reject reject reject", "cluster cluster+ cluster+"],
    },
  );
});

describe("internal policy Local", () => {
  table(["cluster-ip"], INTERNAL_LOCAL, {
    "endpoints here": [here, "local local+ local+", "local local+ local+"],
    "draining here": [drainingHere, "local local+ local+", "local local+ local+"],
    "endpoints elsewhere": [elsewhere, "drop drop drop", "local local+ local+"],
    "no endpoints": [none, "reject reject reject", "local local+ local+"],
  });
});

describe("internal policy Local of a service that is reached from outside too", () => {
  table(
    ["cluster-ip"],
    { ...INTERNAL_LOCAL, ...EXTERNAL },
    {
      "endpoints here": [here, "local local+ local+", "local local+ local+"],
      "endpoints elsewhere": [elsewhere, "drop drop drop", "cluster cluster+ cluster+"],
    },
  );
  table(
    EXTERNAL_KINDS,
    { ...INTERNAL_LOCAL, ...EXTERNAL },
    {
      "endpoints elsewhere": [elsewhere, "cluster+ cluster+ cluster+", "cluster+ cluster+ cluster+"],
    },
  );
});

describe("external policy Cluster", () => {
  table(EXTERNAL_KINDS, EXTERNAL, {
    "endpoints here": [here, "cluster+ cluster+ cluster+", "cluster+ cluster+ cluster+"],
    "no detector": [here, "cluster+ cluster+ cluster+", "cluster+ cluster+ cluster+", NO_DETECTOR],
    "no endpoints": [none, "reject reject reject", "cluster+ cluster+ cluster+"],
  });
});

describe("external policy Local", () => {
  table(EXTERNAL_KINDS, EXTERNAL_LOCAL, {
    "endpoints here": [here, "cluster cluster+ local", "local local local"],
    "draining here": [drainingHere, "cluster cluster+ local", "local local local"],
    "endpoints elsewhere": [elsewhere, "cluster cluster+ drop", "cluster cluster cluster"],
    "no detector": [here, "local cluster+ local", "local local local", NO_DETECTOR],
    "no detector, endpoints elsewhere": [elsewhere, "drop cluster+ drop", "cluster cluster cluster", NO_DETECTOR],
    "endpoints of another network": [here, "cluster+ cluster+ local", "local local local", THEIRS],
    "masquerading all": [here, "cluster cluster+ local", "local local local", MASQUERADE_ALL],
    "no endpoints": [none, "reject reject reject", "local local local"],
  });
  table(["cluster-ip"], EXTERNAL_LOCAL, {
    "endpoints elsewhere": [elsewhere, "cluster cluster+ cluster+", "cluster cluster+ cluster+"],
  });
});

describe("an answer where policy Local finds no endpoint", () => {
  const REFUSES = { annotations: { "fairlead.dev/no-local-endpoint": "reject" } };
  table(
    EXTERNAL_KINDS,
    { ...EXTERNAL_LOCAL, ...REFUSES },
    {
      "endpoints here": [here, "cluster cluster+ local", "local local local"],
      "endpoints elsewhere": [elsewhere, "cluster cluster+ reject", "local local local"],
    },
  );
  table(
    ["cluster-ip"],
    { ...INTERNAL_LOCAL, ...REFUSES },
    {
      "endpoints elsewhere": [elsewhere, "reject reject reject", "local local+ local+"],
    },
  );
  table(
    ["cluster-ip"],
    { ...EXTERNAL_LOCAL, ...REFUSES },
    {
      "policy Cluster, endpoints elsewhere": [elsewhere, "cluster cluster+ cluster+", "cluster cluster+ cluster+"],
    },
  );
});
