import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  type Command,
  checkChainName,
  comment,
  endpointChainName,
  hashedName,
  type IptablesPort,
  jump,
  MAX_CHAIN_NAME_LENGTH,
  parseSave,
  type Rule,
  repairJumps,
  ruleKey,
  type ServiceChainKind,
  servicePortChainName,
  shareProbability,
  statisticProbability,
  witnessed,
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

const rule = (name: string): Rule => ({ matches: [comment(name)], target: jump(`TO-${name.toUpperCase()}`) });
const [a, b, z, unwanted, theirs, other] = ["a", "b", "z", "unwanted", "theirs", "other"].map(rule) as [
  Rule,
  Rule,
  Rule,
  Rule,
  Rule,
  Rule,
];
const isUnwanted = (one: Rule) => ruleKey(one) === ruleKey(unwanted);

/** What the built-in chain holds after the commands, as iptables-restore carries them out. */
function after(existing: readonly Rule[], commands: readonly Command[]): Rule[] {
  const rules = [...existing];
  for (const command of commands) {
    if (command.kind === "insert") rules.splice(command.position - 1, 0, command.rule);
    else if (command.kind === "append") rules.push(command.rule);
    else if (command.kind === "delete") {
      const at = rules.findIndex((one) => ruleKey(one) === ruleKey(command.rule));
      expect(at).not.toBe(-1);
      rules.splice(at, 1);
    } else throw new Error(`${command.kind} has nothing to do with jumps`);
  }
  return rules;
}

const names = (rules: readonly Rule[]) => rules.map(({ target }) => (target?.kind === "jump" ? target.chain : ""));

describe("repairJumps", () => {
  test.each([
    { what: "nothing is there", existing: [], result: ["TO-A", "TO-B", "TO-Z"] },
    { what: "others' rules come first", existing: [theirs], result: ["TO-A", "TO-B", "TO-THEIRS", "TO-Z"] },
    {
      what: "one is missing",
      existing: [theirs, a, other, z],
      result: ["TO-THEIRS", "TO-A", "TO-B", "TO-OTHER", "TO-Z"],
    },
    {
      what: "two stand the wrong way round",
      existing: [theirs, b, a, z],
      result: ["TO-THEIRS", "TO-A", "TO-B", "TO-Z"],
    },
    {
      what: "the last one and an unwanted one stand before them",
      existing: [z, theirs, unwanted, a, other],
      result: ["TO-THEIRS", "TO-A", "TO-B", "TO-OTHER", "TO-Z"],
    },
  ])("$what", ({ existing, result }) => {
    const commands = repairJumps("INPUT", { first: [a, b], last: [z], isUnwanted }, existing);
    expect(names(after(existing, commands))).toEqual(result);
  });

  test("others may stand between and around them", () => {
    expect(repairJumps("INPUT", { first: [a, b], last: [z] }, [theirs, a, other, b, theirs, z, other])).toEqual([]);
  });

  test("whatever stood there: ours once and in order, others' as they were, and a second repair has nothing to do", () => {
    const chain = fc.array(fc.constantFrom(a, b, z, unwanted, theirs, other), { maxLength: 12 });
    fc.assert(
      fc.property(chain, fc.boolean(), (existing, withLast) => {
        const jumps = { first: [a, b], ...(withLast && { last: [z] }), isUnwanted };
        const wanted = withLast ? [a, b, z] : [a, b];
        const result = after(existing, repairJumps("INPUT", jumps, existing));
        const ours = (one: Rule) => wanted.includes(one) || one === unwanted;
        expect(result.filter(ours)).toEqual(wanted);
        expect(result.filter((one) => !ours(one))).toEqual(existing.filter((one) => !ours(one)));
        expect(repairJumps("INPUT", jumps, result)).toEqual([]);
      }),
    );
  });
});

const port = (variant: IptablesPort["variant"], states: readonly (string | undefined)[]) => {
  const left = [...states];
  const glance = async () => {
    const state = left.shift();
    return state === undefined ? undefined : { state };
  };
  return { family: "IPv6", variant, glance } as const;
};
const write = async () => "done";

test("nft: a generation that is as it was after writing is an error", async () => {
  await expect(witnessed(port("nft", ["7", "7"]), write)).rejects.toThrow(
    "iptables-restore (IPv6) reported success, but the kernel's rules are as they were before",
  );
});

test.each([
  ["another generation", port("nft", ["7", "8"])],
  ["a kernel that cannot be asked", port("nft", [])],
  ["one that could be asked before only", port("nft", ["7"])],
  ["the legacy variant, which may hold the same rules already", port("legacy", ["7", "7"])],
  ["no way to ask", { family: "IPv4", variant: "nft" } as const],
])("%s is none", async (_, asked) => {
  expect(await witnessed(asked, write)).toBe("done");
});

test("nor is one after writing that changes nothing", async () => {
  expect(await witnessed(port("nft", ["7", "7"]), write, (result) => result !== "done")).toBe("done");
});
