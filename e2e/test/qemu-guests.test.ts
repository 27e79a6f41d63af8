import { expect, test } from "vitest";
import { livedIn, serviceOf, slicesOf } from "../src/qemu/guest.ts";
import { STORAGE_WAYS, waysOf } from "../src/qemu/ipvs-node.ts";

/** What needs no guest: the tests in guests run at night only. */
test("each way that is asked in a guest has a name of its own, by which it is found in what the guest prints", () => {
  const names = [...waysOf("first"), ...waysOf("second"), ...STORAGE_WAYS].map(({ name }) => name);
  expect(names.filter((name, at) => names.indexOf(name) !== at)).toEqual([]);
});

test("a service has the ports of its protocols, and a slice of each family theirs", () => {
  const served = {
    clusterIP: { IPv4: "10.96.0.10", IPv6: "fd00:96::10" },
    ports: { udp: [53, 5_353], tcp: [80, 8_080] },
  } as const;
  expect(serviceOf("web", served)).toMatchObject({
    spec: {
      type: "ClusterIP",
      ports: [
        { name: "tcp", port: 80, targetPort: 8_080 },
        { protocol: "UDP", port: 53 },
      ],
    },
  });
  const [first, second] = slicesOf("web", served, (family) => (family === "IPv4" ? ["10.144.1.5"] : []), "-net1");
  expect(first).toMatchObject({
    metadata: { name: "web-net1-ipv4" },
    ports: [{ port: 8_080 }, { port: 5_353 }],
    endpoints: [{ addresses: ["10.144.1.5"] }],
  });
  expect(second).toMatchObject({ metadata: { name: "web-net1-ipv6" }, endpoints: [] });
});

test("what a guest did not print is not a number", () => {
  expect(livedIn("web flows=16 answers=900 lost=0 stalled=1")).toEqual({
    ...{ flows: 16, answers: 900, lost: 0, stalled: 1 },
    moved: Number.NaN,
  });
});
