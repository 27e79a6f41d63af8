import { expectReadmeExample } from "@fairlead/tooling/readme";
import { describe, expect, test } from "vitest";
import { parseExcludeCIDRs } from "../src/index.ts";

const check = (values: readonly string[], cluster: readonly string[] = []) =>
  parseExcludeCIDRs({ field: "--exclude-cluster-cidr", values }, { field: "--cluster-cidr", values: cluster });

const FORM = "must be a CIDR, such as 10.244.0.0/16 or fd00:244::/48";

describe("refused by itself", () => {
  test.each([
    ["", FORM],
    ["pods", FORM],
    ["10.244.0.0/33", FORM],
    ["10.244.0.0/-1", FORM],
    ["10.244.0.0/016", FORM],
    ["10.244.0/16", FORM],
    ["010.244.0.0/16", FORM],
    [" 10.244.0.0/16", FORM],
    ["fd00:244::/129", FORM],
    ["fe80::1%eth0/64", FORM],
    ["10.244.0.0/16/16", FORM],
    ["::ffff:0.0.0.0/90", FORM],
    ["10.244.0.5", `${FORM}; the single address is 10.244.0.5/32`],
    ["fd00:244::5", `${FORM}; the single address is fd00:244::5/128`],
    ["10.244.1.0/16", "has host bits set; write 10.244.0.0/16"],
    ["fd00:244::1/48", "has host bits set; write fd00:244::/48"],
    ["::ffff:10.244.0.0/112", "is IPv4 written as IPv6; write 10.244.0.0/16"],
    ["::ffff:10.244.3.0/112", "is IPv4 written as IPv6; write 10.244.0.0/16"],
    [
      "0.0.0.0/0",
      "covers every IPv4 address, so no service would be proxied here; set the other network's pod CIDR, such as 10.244.0.0/16 or fd00:244::/48",
    ],
    [
      "::/0",
      "covers every IPv6 address, so no service would be proxied here; set the other network's pod CIDR, such as 10.244.0.0/16 or fd00:244::/48",
    ],
  ])("%j: %s", (value, message) => {
    expect(check([value])).toEqual({ ok: false, errors: [{ field: "--exclude-cluster-cidr", value, message }] });
  });

  test("all at once", () => {
    expect(check(["10.244.0.1/16", "good", "10.245.0.0/16", "0.0.0.0/0"])).toMatchObject({
      ok: false,
      errors: [{ value: "10.244.0.1/16" }, { value: "good" }, { value: "0.0.0.0/0" }],
    });
  });
});

describe("refused next to the cluster CIDRs, by family", () => {
  test.each([
    [["10.144.0.0/16"], ["10.144.0.0/16"]],
    [["10.0.0.0/8"], ["10.144.0.0/16"]],
    [["10.144.0.0/17", "10.144.128.0/17"], ["10.144.0.0/16"]],
    [
      ["10.144.0.0/16", "10.145.0.0/16"],
      ["10.144.0.0/16", "10.145.0.0/16"],
    ],
    [["fd00:144::/48"], ["10.144.0.0/16", "fd00:144::/48"]],
  ])("%j leaves nothing of %j", (excluded, cluster) => {
    const result = check(excluded, cluster);
    if (result.ok) throw new Error("taken");
    const six = excluded[0]?.includes(":");
    const own = cluster.filter((cidr) => cidr.includes(":") === six).join(",");
    expect(result.errors).toHaveLength(1);
    expect(result.errors[0]?.value).toBe(excluded.join(","));
    expect(result.errors[0]?.message).toContain(`covers all of --cluster-cidr ${own}`);
  });
});

describe("taken", () => {
  test.each([
    [["10.244.0.0/16", "fd00:244::/48"], ["10.144.0.0/16"], []],
    [["10.244.0.0/16"], [], []],
    [["FD00:0244::/48"], ["fd00:144::/48"], []],
    [
      ["10.244.0.0/16"],
      ["10.0.0.0/8"],
      [
        "--exclude-cluster-cidr: 10.244.0.0/16 is a part of 10.0.0.0/8 in --cluster-cidr; traffic from there is not masqueraded",
      ],
    ],
    [
      ["10.244.0.0/16"],
      ["10.144.0.0/16", "10.244.0.0/16"],
      [
        "--exclude-cluster-cidr: 10.244.0.0/16 is one of the CIDRs of --cluster-cidr; traffic from there is not masqueraded",
      ],
    ],
    [
      ["10.244.0.0/15"],
      ["10.144.0.0/16", "10.244.0.0/16"],
      ["--exclude-cluster-cidr: 10.244.0.0/15 contains part of --cluster-cidr 10.144.0.0/16,10.244.0.0/16"],
    ],
    [["10.244.0.0/16", "10.244.0.0/16"], [], ["--exclude-cluster-cidr: 10.244.0.0/16 is listed twice"]],
  ])("%j next to %j", (excluded, cluster, notes) => {
    const cidrs = [...new Set(excluded.map((cidr) => cidr.toLowerCase().replace(":0", ":")))];
    expect(check(excluded, cluster)).toEqual({ ok: true, cidrs, notes });
  });
});

test("README example", () => expectReadmeExample(import.meta.dirname));
