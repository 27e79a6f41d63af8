import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type Command, comment, jump, type Rule, repairJumps, ruleKey } from "../src/index.ts";

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
