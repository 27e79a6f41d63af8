import { IP_FAMILIES } from "@fairlead/base";
import { missingForCounting } from "@fairlead/lab/qemu/boot";
import { KERNELS, type KernelVersion } from "@fairlead/lab/qemu/kernel";
import { beforeAll, describe, expect, test } from "vitest";
import type { Lived } from "../src/qemu/guest.ts";
import { NARROW, packetsOn, type Seen, STORAGE_WAYS, waysOf } from "../src/qemu/ipvs-node.ts";

/**
 * The built agent in ipvs mode on Debian's kernels, which have IPVS and all of nf_tables: two uplinks, and a second
 * instance in nftables mode. Takes long: `pnpm e2e --all`.
 */
const missing = await missingForCounting(["iptables-legacy", "nfacct", "ipset", "ipvsadm"]);
const { CI = "" } = process.env;

/** The keys are what it was written with. */
const VERSIONS = Object.keys(KERNELS) as KernelVersion[];

/** Flows that are open at the same time. */
const FLOWS = 9;

const [FIRST, SECOND] = [waysOf("first"), waysOf("second")];

if (missing === undefined) {
  describe.each(VERSIONS)("ipvs mode on Linux %s", (version) => {
    let seen: Seen;

    beforeAll(async () => {
      seen = await packetsOn(version);
    });

    const expectAll = ({ answers, lost, stalled }: Lived) => {
      expect({ lost, stalled }).toEqual({ lost: 0, stalled: 0 });
      expect(answers).toBeGreaterThanOrEqual(FLOWS);
    };

    test.each(SECOND)("without replyVia: $name, none is answered", (way) => {
      expect(seen.lived("without", way).answers).toBe(0);
    });

    test.each(FIRST)("without replyVia: $name", (way) => expectAll(seen.lived("without", way)));

    test.each([...FIRST, ...SECOND])("replyVia: $name", (way) => expectAll(seen.lived("with", way)));

    test.each(["first", "second"])(
      "the client of the %s uplink learns that its first datagram does not fit",
      (uplink) => {
        const known = IP_FAMILIES.map((family) => seen.after(`mtu-${uplink}-${family}`));
        expect(known).toEqual(IP_FAMILIES.map(() => String(NARROW)));
      },
    );

    test.each(SECOND)("the agent is killed: $name", (way) => expectAll(seen.lived("killed", way)));

    test.each(STORAGE_WAYS)("a second instance: $name", (way) => expectAll(seen.lived("named", way)));

    test.each([...STORAGE_WAYS, ...FIRST])(
      "endpoints change, the second instance is killed, both start anew: $name",
      (way) => expectAll(seen.lived("changes", way)),
    );

    test.each(FIRST)("the second instance is cleaned up: $name", (way) => expectAll(seen.lived("cleaned", way)));

    // The second uplink's clients have no answers from kube-proxy's node.
    test.each([...STORAGE_WAYS.filter(({ from }) => from !== "second"), ...FIRST])(
      "a second instance alongside kube-proxy: $name",
      (way) => expectAll(seen.lived("kube-proxy", way)),
    );

    test("each clean-up leaves nothing of its proxy", () => {
      for (const kept of ["fwmark", "fairlead_reply", "fairlead-storage", "kube-ipvs0", "KUBE-CLUSTER-IP"])
        expect(seen.after("there")).toContain(kept);
      expect(["left-named", "left-all", "left-alongside"].map((key) => seen.after(key))).toEqual(["", "", ""]);
    });
  });
} else {
  test("ipvs mode in QEMU", ({ skip }) => {
    if (CI !== "") throw new Error(`CI must run these: ${missing}`);
    skip(missing);
  });
}
