import { familyOf } from "@fairlead/base";
import type { Ownership, OwnershipDecision } from "@fairlead/core";
import { describe, expect, test } from "vitest";
import {
  CIDRSides,
  createEndpointFilter,
  type FilterOptions,
  filterBySides,
  type NeutralAddresses,
  type RuledOwner,
} from "../src/index.ts";
import { endpointsAt, service } from "./service.ts";

describe("filter", () => {
  const OPTIONS: FilterOptions = {
    excludeCIDRs: ["10.244.0.0/16", "fd00:244::/48"],
    mixedServices: "own-endpoints",
    excludedFrontends: "all",
    ownershipAnnotation: true,
  };

  interface Case {
    readonly options?: Partial<FilterOptions>;
    readonly annotation?: string;
    readonly remembered?: Ownership;
    readonly node?: string;
  }

  function decide(
    addresses: readonly string[],
    { options, annotation, remembered, node }: Case = {},
  ): OwnershipDecision {
    const filter = createEndpointFilter({ ...OPTIONS, ...options });
    const annotations = annotation === undefined ? {} : { "fairlead.dev/ownership": annotation };
    const family = familyOf(addresses[0] ?? "");
    return filter.decide(service(annotations), family, endpointsAt(addresses, node), remembered);
  }

  function kept(
    addresses: readonly string[],
    { excludes, frontends }: OwnershipDecision,
    node?: string,
  ): readonly string[] {
    const at = node === undefined ? {} : { nodeName: node };
    return frontends === "none" ? [] : addresses.filter((address) => excludes?.({ address, ...at }) !== true);
  }

  function always(ownership: "ours" | "foreign"): () => RuledOwner {
    return () => ({ ownership, why: "the rule says so" });
  }

  const OWN = ["10.144.154.71", "10.144.154.72"];
  const FOREIGN = ["10.244.0.5", "10.244.0.6"];
  const FIRST = ["10.244.0.5"];
  const both = [...OWN, ...FOREIGN];

  /** Of node a, or as given. */
  function of(addresses: readonly string[], nodes: ReadonlySet<string> | "any" = new Set(["a"])): NeutralAddresses {
    return new Map(addresses.map((address) => [address, nodes]));
  }

  describe("which network owns a service", () => {
    const rows: readonly (readonly [string, readonly string[], Case, Ownership, readonly string[]])[] = [
      ["none lies in an excluded CIDR", OWN, {}, "ours", OWN],
      ["all lie in excluded CIDRs", FOREIGN, {}, "foreign", []],
      ["some of each: own-endpoints", both, {}, "mixed", OWN],
      ["some of each: skip", both, { options: { mixedServices: "skip" } }, "foreign", []],
      ["some of each: all", both, { options: { mixedServices: "all" } }, "ours", both],
      ["IPv6, all", ["fd00:244::5"], {}, "foreign", []],
      ["IPv6, some", ["fd00:244::5", "fd00:144::5"], {}, "mixed", ["fd00:144::5"]],
      ["IPv4-mapped", ["::ffff:10.244.0.5"], {}, "foreign", []],
      ["nothing is excluded", both, { options: { excludeCIDRs: [] } }, "ours", both],
      ["annotated ours", FOREIGN, { annotation: "ours" }, "ours", FOREIGN],
      ["annotated ours, mixed", both, { annotation: "ours" }, "ours", both],
      ["annotated foreign", OWN, { annotation: "foreign" }, "foreign", []],
      ["annotation that says nothing", FOREIGN, { annotation: "Ours" }, "foreign", []],
      ["annotation off", OWN, { annotation: "foreign", options: { ownershipAnnotation: false } }, "ours", OWN],
      ["an own CIDR inside", both, { options: { ownCIDRs: ["10.244.0.4/31"] } }, "mixed", [...OWN, "10.244.0.5"]],
      ["an own CIDR around", FOREIGN, { options: { ownCIDRs: ["10.0.0.0/8"] } }, "foreign", []],
      ["an own CIDR that is the same", FOREIGN, { options: { ownCIDRs: ["10.244.0.0/16"] } }, "foreign", []],
      ["only nodes' addresses", FOREIGN, { node: "a", options: { neutralAddresses: of(FOREIGN) } }, "ours", FOREIGN],
      ["nodes decide nothing", FOREIGN, { node: "a", options: { neutralAddresses: of(FIRST) } }, "foreign", []],
      ["nodes are kept", both, { node: "a", options: { neutralAddresses: of(FIRST) } }, "mixed", both.slice(0, 3)],
      [
        "a node claims a pod elsewhere",
        FOREIGN,
        { node: "b", options: { neutralAddresses: of(FOREIGN) } },
        "foreign",
        [],
      ],
      ["a node claims what is on no node", FOREIGN, { options: { neutralAddresses: of(FOREIGN) } }, "foreign", []],
      ["at the API server, wherever", FOREIGN, { options: { neutralAddresses: of(FOREIGN, "any") } }, "ours", FOREIGN],
      ["a claimed pod is not kept", both, { node: "b", options: { neutralAddresses: of(FIRST) } }, "mixed", OWN],
      ["a rule before the CIDRs", OWN, { options: { rule: always("foreign") } }, "foreign", []],
      ["the annotation before a rule", OWN, { annotation: "ours", options: { rule: always("foreign") } }, "ours", OWN],
      [
        "cluster-ip: every endpoint stays",
        FOREIGN,
        { options: { excludedFrontends: "cluster-ip" } },
        "foreign",
        FOREIGN,
      ],
    ];
    test.each(rows)("%s", (_name, addresses, given, ownership, endpoints) => {
      const decision = decide(addresses, given);
      expect(decision).toMatchObject({ ownership, decided: true });
      expect(kept(addresses, decision, given.node)).toEqual(endpoints);
    });
  });

  test("endpoints that became nodes' addresses only make a service ours, whatever was remembered", () => {
    const options = { neutralAddresses: of(FOREIGN) };
    const decision = decide(FOREIGN, { node: "a", options, remembered: "foreign" });
    expect(decision).toMatchObject({ ownership: "ours", decided: true, ownEndpoints: 2, excludedEndpoints: 0 });
    expect(decision.why).toBe("all of its 2 endpoints are nodes' addresses, which are in no pod network");
  });

  test("an address is a node's if one of two slices has it on that node, in whatever order they come", () => {
    const filter = createEndpointFilter({ ...OPTIONS, neutralAddresses: of(FIRST) });
    const slices = [...endpointsAt(FIRST, "b"), ...endpointsAt(FIRST, "a")];
    for (const endpoints of [slices, slices.toReversed()]) {
      const decision = filter.decide(service(), "IPv4", endpoints, undefined);
      expect(decision).toMatchObject({ ownership: "ours", ownEndpoints: 1, excludedEndpoints: 0 });
    }
  });

  test("isForeign follows own CIDRs and nodes' addresses", () => {
    const filter = createEndpointFilter({
      ...OPTIONS,
      ownCIDRs: ["10.244.1.0/24"],
      neutralAddresses: of(FIRST),
    });
    const asked = ["10.244.0.5", "10.244.0.6", "10.244.1.6", "fd00:244::1"];
    expect(asked.map((address) => filter.isForeign?.(address))).toEqual([false, true, false, true]);
  });

  test("a bad annotation is quoted so that it cannot turn a line round", () => {
    expect(decide(OWN, { annotation: "o\u202eurs" }).problem).toContain('"o\\u202eurs"');
  });

  describe("no endpoints: the memory goes on", () => {
    const rows: readonly (readonly [Ownership | undefined, FilterOptions["mixedServices"], Ownership])[] = [
      [undefined, "own-endpoints", "ours"],
      ["ours", "own-endpoints", "ours"],
      ["foreign", "own-endpoints", "foreign"],
      ["mixed", "own-endpoints", "mixed"],
      ["mixed", "skip", "foreign"],
      ["mixed", "all", "ours"],
    ];
    test.each(rows)("remembered %s under %s is %s", (remembered, mixedServices, ownership) => {
      const decision = decide([], { ...(remembered === undefined ? {} : { remembered }), options: { mixedServices } });
      expect(decision).toMatchObject({ ownership, decided: false, ownEndpoints: 0, excludedEndpoints: 0 });
      expect(decision.frontends).toBe(ownership === "foreign" ? "none" : "all");
    });

    test("with endpoints it is not asked", () => {
      expect(decide(OWN, { remembered: "foreign" })).toMatchObject({ ownership: "ours", decided: true });
    });

    test("an annotation decides without endpoints", () => {
      expect(decide([], { annotation: "foreign" })).toMatchObject({ ownership: "foreign", decided: true });
    });
  });

  describe("frontends that are programmed", () => {
    test.each([
      [OWN, "all", "all"],
      [FOREIGN, "all", "none"],
      [OWN, "cluster-ip", "all"],
      [FOREIGN, "cluster-ip", "all-but-cluster-ip"],
      [both, "cluster-ip", "all"],
      [OWN, "excluded-clients", "all"],
      [FOREIGN, "excluded-clients", "all-but-excluded-clients"],
      [both, "excluded-clients", "all"],
    ] as const)("%j under %s: %s", (addresses, excludedFrontends, frontends) => {
      expect(decide(addresses, { options: { excludedFrontends } }).frontends).toBe(frontends);
    });

    test.each([
      [{}, "none"],
      [{ excludedFrontends: "all" }, "none"],
      [{ excludedFrontends: "cluster-ip" }, "all-but-cluster-ip"],
      [{ excludedFrontends: "excluded-clients" }, "all-but-excluded-clients"],
    ] as const)("of what a rule gave away the rule says it: %j, %s", (left, frontends) => {
      const options = {
        excludedFrontends: "excluded-clients",
        rule: () => ({ ...always("foreign")(), ...left }),
      } as const;
      expect(decide(OWN, { options })).toMatchObject({ ownership: "foreign", frontends });
    });

    test("skipped and annotated ones are as foreign as others", () => {
      const options = { excludedFrontends: "cluster-ip", mixedServices: "skip" } as const;
      expect(decide(both, { options })).toMatchObject({ frontends: "all-but-cluster-ip" });
      expect(decide(OWN, { options, annotation: "foreign" })).toMatchObject({ frontends: "all-but-cluster-ip" });
    });
  });

  describe("clients that the other network serves itself", () => {
    const clients = (options: Partial<FilterOptions>) =>
      createEndpointFilter({ ...OPTIONS, excludedFrontends: "excluded-clients", ...options }).excludedClients;

    test("are not nodes, in what was learned; the operator's own list is followed", () => {
      const sides = CIDRSides.of(["10.244.0.0/24", "10.245.0.0/24"]);
      const filter = filterBySides(sides, {
        ...OPTIONS,
        excludedFrontends: "excluded-clients",
        neutralAddresses: of(["10.244.0.0", "10.245.0.0", "10.1.0.1"]),
        protection: { services: new Set(), unprotected: new Set(), written: CIDRSides.of(["10.245.0.0/24"]) },
      });
      expect(filter.excludedClients?.("IPv4")).toEqual([
        ...["10.244.0.1/32", "10.244.0.2/31", "10.244.0.4/30", "10.244.0.8/29", "10.244.0.16/28", "10.244.0.32/27"],
        ...["10.244.0.64/26", "10.244.0.128/25", "10.245.0.0/24"],
      ]);
      expect(filter.isForeign?.("10.244.0.0")).toBe(false);
    });

    test("are unset under another policy", () => {
      expect(clients({ excludedFrontends: "all" })).toBeUndefined();
      expect(clients({ excludedFrontends: "cluster-ip" })).toBeUndefined();
    });
  });

  describe("what the operator reads", () => {
    test.each<[readonly string[], Case, string]>([
      [OWN, {}, "none of its 2 endpoints is in an excluded CIDR"],
      [FOREIGN, {}, "all of its 2 endpoints are in 10.244.0.0/16"],
      [["10.244.0.5"], {}, "its endpoint is in 10.244.0.0/16"],
      [
        both,
        {},
        "2 of its 4 endpoints are in 10.244.0.0/16; mixed services: own-endpoints, so only its other endpoints are used",
      ],
      [[], { remembered: "foreign" }, "it has no endpoints; when it last had endpoints, it was foreign"],
      [[], {}, "it has no endpoints, and its last owner is not known"],
      [OWN, { annotation: "foreign" }, "annotation fairlead.dev/ownership: foreign"],
      [
        FOREIGN,
        { options: { excludedFrontends: "cluster-ip" } },
        "all of its 2 endpoints are in 10.244.0.0/16; only its ClusterIP is left to the other network",
      ],
    ])("%j %j", (addresses, given, why) => {
      expect(decide(addresses, given).why).toBe(why);
    });

    test("a list of CIDRs is cut", () => {
      const excludeCIDRs = Array.from({ length: 20 }, (_, index) => `10.${index}.0.0/16`);
      const { why } = decide(
        excludeCIDRs.map((cidr) => cidr.replace("0.0/16", "0.9")),
        { options: { excludeCIDRs } },
      );
      expect(why).toBe("all of its 20 endpoints are in 10.0.0.0/16, 10.1.0.0/16, 10.10.0.0/16 and 17 more");
    });

    test("a bad annotation is a problem; its text is quoted and cut", () => {
      expect(decide(OWN, { annotation: 'a"\n' }).problem).toBe(
        'annotation fairlead.dev/ownership is "a\\"\\n", ignored; it must be ours or foreign',
      );
      expect(decide(OWN, { annotation: "x".repeat(100_000) }).problem?.length).toBeLessThan(150);
      expect(decide(OWN, { annotation: "mine", options: { ownershipAnnotation: false } })).not.toHaveProperty(
        "problem",
      );
      expect(decide(OWN, { annotation: "ours" })).not.toHaveProperty("problem");
    });
  });

  test("a CIDR that was not checked is refused", () => {
    for (const cidr of ["10.244.0.1/16", "10.244.0.0", "::ffff:10.244.0.0/112"]) {
      expect(() => createEndpointFilter({ ...OPTIONS, excludeCIDRs: [cidr] })).toThrow(TypeError);
    }
  });
});

describe("masquerade", () => {
  const OPTIONS: FilterOptions = {
    excludeCIDRs: ["10.244.0.0/16"],
    clusterCIDRs: ["10.144.0.0/16"],
    mixedServices: "own-endpoints",
    excludedFrontends: "excluded-clients",
    ownershipAnnotation: true,
  };
  const OWN = ["10.144.1.5"];
  const FOREIGN = ["10.244.1.5"];
  const BOTH = [...OWN, ...FOREIGN];

  function masquerades(
    addresses: readonly string[],
    options: Partial<FilterOptions> = {},
    annotation?: string,
  ): boolean {
    const annotations = annotation === undefined ? {} : { "fairlead.dev/ownership": annotation };
    const filter = createEndpointFilter({ ...OPTIONS, ...options });
    const decision = filter.decide(service(annotations), "IPv4", endpointsAt(addresses, "a"), undefined);
    return decision.masqueradesPods === true;
  }

  test.each<[string, readonly string[], Partial<FilterOptions>, boolean]>([
    ["a service of the other network", FOREIGN, {}, true],
    ["without any cluster CIDR", FOREIGN, { clusterCIDRs: [] }, true],
    ["one of ours", OWN, {}, false],
    ["a mixed one, of which our endpoints are used", BOTH, { masqueradeToExcluded: true }, false],
    ["a mixed one, of which all are used", BOTH, { mixedServices: "all", masqueradeToExcluded: true }, true],
    ["a mixed one, of which all are used, by default", BOTH, { mixedServices: "all" }, false],
    ["switched off", FOREIGN, { masqueradeToExcluded: false }, false],
    ["in a cluster CIDR that has both networks", FOREIGN, { clusterCIDRs: ["10.0.0.0/8"] }, false],
    ["only its ClusterIP is left, by default", FOREIGN, { excludedFrontends: "cluster-ip" }, false],
    ["only its ClusterIP is left", FOREIGN, { excludedFrontends: "cluster-ip", masqueradeToExcluded: true }, true],
    ["nothing of it is served", FOREIGN, { excludedFrontends: "all", masqueradeToExcluded: true }, false],
    ["at a node's address", FOREIGN, { neutralAddresses: new Map([["10.244.1.5", new Set(["a"])]]) }, false],
    ["without endpoints", [], {}, false],
  ])("our pods on the way to %s", (_what, addresses, options, expected) => {
    expect(masquerades(addresses, options)).toBe(expected);
  });

  test("an annotation decides whose a service is, its endpoints where answers go", () => {
    expect(masquerades(OWN, {}, "foreign")).toBe(false);
    expect(masquerades(["192.0.2.5"], {}, "foreign")).toBe(true);
    expect(masquerades(FOREIGN, { masqueradeToExcluded: true }, "ours")).toBe(true);
    expect(masquerades(FOREIGN, {}, "ours")).toBe(false);
  });
});
