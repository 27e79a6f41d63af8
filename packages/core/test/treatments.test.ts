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

interface Row {
  readonly where: readonly SliceEndpoint[];
  /** pod, node, outside */
  readonly shortCut: string;
  readonly noShortCut: string;
  readonly options?: Partial<PlannerOptions>;
}

function table(kinds: readonly FrontendKind[], fields: Partial<Service>, rows: Readonly<Record<string, Row>>): void {
  for (const [what, { where: endpoints, options, shortCut, noShortCut }] of Object.entries(rows)) {
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
      "endpoints here": { where: here, shortCut: "cluster cluster+ cluster+", noShortCut: "cluster cluster+ cluster+" },
      "endpoints elsewhere": {
        where: elsewhere,
        shortCut: "cluster cluster+ cluster+",
        noShortCut: "cluster cluster+ cluster+",
      },
      "masquerading all": {
        where: here,
        options: MASQUERADE_ALL,
        shortCut: "cluster+ cluster+ cluster+",
        noShortCut: "cluster+ cluster+ cluster+",
      },
      "endpoints of another network": {
        where: here,
        options: THEIRS,
        shortCut: "cluster+ cluster+ cluster+",
        noShortCut: "cluster+ cluster+ cluster+",
      },
      "endpoints of another network, no detector": {
        where: here,
        options: { ...NO_DETECTOR, ...THEIRS },
        shortCut: "cluster+ cluster+ cluster+",
        noShortCut: "cluster+ cluster+ cluster+",
      },
      "no detector": {
        where: here,
        options: NO_DETECTOR,
        shortCut: "cluster cluster cluster",
        noShortCut: "cluster cluster cluster",
      },
      "no detector, masquerading all": {
        where: here,
        options: { ...NO_DETECTOR, ...MASQUERADE_ALL },
        shortCut: "cluster+ cluster+ cluster+",
        noShortCut: "cluster+ cluster+ cluster+",
      },
      "no endpoints": { where: none, shortCut: "reject reject reject", noShortCut: "cluster cluster+ cluster+" },
    },
  );
});

describe("internal policy Local", () => {
  table(["cluster-ip"], INTERNAL_LOCAL, {
    "endpoints here": { where: here, shortCut: "local local+ local+", noShortCut: "local local+ local+" },
    "draining here": { where: drainingHere, shortCut: "local local+ local+", noShortCut: "local local+ local+" },
    "endpoints elsewhere": { where: elsewhere, shortCut: "drop drop drop", noShortCut: "local local+ local+" },
    "no endpoints": { where: none, shortCut: "reject reject reject", noShortCut: "local local+ local+" },
  });
});

describe("internal policy Local of a service that is reached from outside too", () => {
  table(
    ["cluster-ip"],
    { ...INTERNAL_LOCAL, ...EXTERNAL },
    {
      "endpoints here": { where: here, shortCut: "local local+ local+", noShortCut: "local local+ local+" },
      "endpoints elsewhere": { where: elsewhere, shortCut: "drop drop drop", noShortCut: "cluster cluster+ cluster+" },
    },
  );
  table(
    EXTERNAL_KINDS,
    { ...INTERNAL_LOCAL, ...EXTERNAL },
    {
      "endpoints elsewhere": {
        where: elsewhere,
        shortCut: "cluster+ cluster+ cluster+",
        noShortCut: "cluster+ cluster+ cluster+",
      },
    },
  );
});

describe("external policy Cluster", () => {
  table(EXTERNAL_KINDS, EXTERNAL, {
    "endpoints here": { where: here, shortCut: "cluster+ cluster+ cluster+", noShortCut: "cluster+ cluster+ cluster+" },
    "no detector": {
      where: here,
      options: NO_DETECTOR,
      shortCut: "cluster+ cluster+ cluster+",
      noShortCut: "cluster+ cluster+ cluster+",
    },
    "no endpoints": { where: none, shortCut: "reject reject reject", noShortCut: "cluster+ cluster+ cluster+" },
  });
});

describe("external policy Local", () => {
  table(EXTERNAL_KINDS, EXTERNAL_LOCAL, {
    "endpoints here": { where: here, shortCut: "cluster cluster+ local", noShortCut: "local local local" },
    "draining here": { where: drainingHere, shortCut: "cluster cluster+ local", noShortCut: "local local local" },
    "endpoints elsewhere": {
      where: elsewhere,
      shortCut: "cluster cluster+ drop",
      noShortCut: "cluster cluster cluster",
    },
    "no detector": {
      where: here,
      options: NO_DETECTOR,
      shortCut: "local cluster+ local",
      noShortCut: "local local local",
    },
    "no detector, endpoints elsewhere": {
      where: elsewhere,
      options: NO_DETECTOR,
      shortCut: "drop cluster+ drop",
      noShortCut: "cluster cluster cluster",
    },
    "endpoints of another network": {
      where: here,
      options: THEIRS,
      shortCut: "cluster+ cluster+ local",
      noShortCut: "local local local",
    },
    "masquerading all": {
      where: here,
      options: MASQUERADE_ALL,
      shortCut: "cluster cluster+ local",
      noShortCut: "local local local",
    },
    "no endpoints": { where: none, shortCut: "reject reject reject", noShortCut: "local local local" },
  });
  table(["cluster-ip"], EXTERNAL_LOCAL, {
    "endpoints elsewhere": {
      where: elsewhere,
      shortCut: "cluster cluster+ cluster+",
      noShortCut: "cluster cluster+ cluster+",
    },
  });
});

describe("an answer where policy Local finds no endpoint", () => {
  const REFUSES = { annotations: { "fairlead.dev/no-local-endpoint": "reject" } };
  const WHERE: Pick<Row, "where"> = { where: elsewhere };
  table(
    EXTERNAL_KINDS,
    { ...EXTERNAL_LOCAL, ...REFUSES },
    {
      "endpoints here": { where: here, shortCut: "cluster cluster+ local", noShortCut: "local local local" },
      "endpoints elsewhere": { ...WHERE, shortCut: "cluster cluster+ reject", noShortCut: "local local local" },
    },
  );
  table(
    ["cluster-ip"],
    { ...INTERNAL_LOCAL, ...REFUSES },
    {
      "endpoints elsewhere": { ...WHERE, shortCut: "reject reject reject", noShortCut: "local local+ local+" },
    },
  );
  table(
    ["cluster-ip"],
    { ...EXTERNAL_LOCAL, ...REFUSES },
    {
      "policy Cluster, endpoints elsewhere": {
        ...WHERE,
        shortCut: "cluster cluster+ cluster+",
        noShortCut: "cluster cluster+ cluster+",
      },
    },
  );
});
