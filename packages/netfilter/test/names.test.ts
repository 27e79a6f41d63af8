import { describe, expect, test } from "vitest";
import {
  checkChainName,
  endpointChainName,
  hashedName,
  MAX_CHAIN_NAME_LENGTH,
  parseSave,
  type ServiceChainKind,
  servicePortChainName,
  shareProbability,
  statisticProbability,
} from "../src/index.ts";
import { goldenTexts } from "./golden.ts";

describe("names that others know", () => {
  test.each([
    ["kube-system/kube-dns:dns", "UDP", "TCOU7JCQXEZGVUNU"],
    ["kube-system/kube-dns:dns-tcp", "TCP", "ERIFXISQEP7F7OF4"],
    ["default/kubernetes:https", "tcp", "NPX46M4PTMTKRN6Y"],
    ["default/nginx-calico", "TCP", "RH2G6EKXTJDCSNM7"],
  ])("%s %s", (name, protocol, expected) => {
    for (const kind of ["SVC", "SVL", "EXT", "FW"] satisfies ServiceChainKind[]) {
      expect(servicePortChainName(kind, name, protocol)).toBe(`KUBE-${kind}-${expected}`);
    }
  });

  test("an endpoint of IPv4", () => {
    expect(endpointChainName("default/nginx-calico", "TCP", "10.144.154.71:80")).toBe("KUBE-SEP-ZMODNQBWAQHJ2KQZ");
  });
});

describe("endpoint chains of the golden files, both families", () => {
  // In a large cluster kube-proxy leaves out the comments that say whose endpoint it is.
  test.each(goldenTexts().filter(({ name }) => !name.includes("large-cluster")))("$name", ({ family, text }) => {
    for (const [name, { rules }] of parseSave(text, { family }).get("nat")?.chains ?? []) {
      if (!name.startsWith("KUBE-SEP-")) continue;
      const target = rules.at(-1)?.target;
      const comment = rules.at(-1)?.matches.find((match) => match.kind === "comment");
      const protocol = rules.at(-1)?.protocol?.value ?? "";
      const to = target?.kind === "dnat" ? target.to : "";
      expect(endpointChainName(comment?.text ?? "", protocol, to)).toBe(name);
    }
  });
});

test("a hashed name fills a chain name", () => {
  expect(checkChainName(hashedName("FAIRLEAD-XY-", "text"))).toHaveLength(MAX_CHAIN_NAME_LENGTH);
});

describe("probabilities as the kernel keeps them", () => {
  test.each([
    [2, "0.50000000000"],
    [3, "0.33333333349"],
    [7, "0.14285714272"],
  ])("one of %d", (count, expected) => expect(shareProbability(1, count)).toBe(expected));

  test.each([-0.1, 1.1, Number.NaN])("%d is none", (value) => {
    expect(() => statisticProbability(value)).toThrow(RangeError);
  });
});
