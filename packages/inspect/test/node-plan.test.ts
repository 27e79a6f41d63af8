import { IP_FAMILIES } from "@fairlead/base";
import { endpointSlice, service } from "@fairlead/testkit";
import { expect, test } from "vitest";
import { planned } from "./support/scenario.ts";

const node = {
  name: "node-a",
  zone: "a",
  addresses: ["10.201.0.10"],
  clusterCIDRs: ["10.144.0.0/16"],
  serviceCIDRs: ["10.96.0.0/16"],
};

/** A Service with one slice of each weight, and what else its annotations ask for. */
function objects(annotations: Readonly<Record<string, string>>, weights: readonly (string | undefined)[]) {
  const slices = weights.map((weight, at) =>
    endpointSlice(`web-${at}`, {
      service: "web",
      family: "IPv4",
      ports: [{ port: 8080 }],
      endpoints: weight === "refused" ? [] : [{ address: `10.144.1.${5 + at}` }],
      ...(weight !== undefined && {
        annotations:
          weight === "refused"
            ? { "fairlead.dev/weight": "1", "fairlead.dev/weight-refused": "true" }
            : { "fairlead.dev/weight": weight },
      }),
    }),
  );
  const fields = { type: "NodePort", clusterIPs: ["10.96.0.9"], ports: [{ port: 80, nodePort: 30_080 }] } as const;
  return [service("web", { ...fields, annotations }), ...slices];
}

const ANNOTATIONS = {
  "fairlead.dev/balance": "source-hash",
  "fairlead.dev/no-local-endpoint": "reject",
  "fairlead.dev/node-port-source-ranges": "192.0.2.0/24",
  "fairlead.dev/ownership": "excluded",
};

test.each(["iptables", "nftables"] as const)("%s: kube-proxy knows none of Fairlead's annotations", async (mode) => {
  const plans = async (asKubeProxy: boolean, ...given: Parameters<typeof objects>) => {
    const { planner } = await planned({ objects: objects(...given), node }, { mode, asKubeProxy });
    return IP_FAMILIES.map((family) => [...planner.plan(family).groups.values()]);
  };
  const annotated = [ANNOTATIONS, ["9", "1", "0", "refused"]] as const;
  const plain = await plans(true, {}, [undefined, undefined, undefined]);
  expect(await plans(true, ...annotated)).toEqual(plain);
  expect(await plans(false, ...annotated)).not.toEqual(plain);
});
