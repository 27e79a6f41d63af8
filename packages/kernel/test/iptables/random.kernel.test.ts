import { renderRuleSet } from "@fairlead/netfilter";
import { runs } from "@fairlead/tooling/runs";
import fc from "fast-check";
import { expect, test } from "vitest";
import { FakeIptables } from "../../src/fake/index.ts";
import { createRunner, type IptablesClient, IptablesError, openIptables } from "../../src/index.ts";
import { createNamespace } from "../../src/netns/index.ts";
import { kernelSuite } from "../kernel-test.ts";

const chain = fc.constantFrom("A", "B", "C", "OUTPUT", "POSTROUTING");
const rule = fc.constantFrom("-j A", "-j B", "-g C", "-j ACCEPT", "-d 10.96.0.1/32 -j RETURN", "-j MASQUERADE");
const own = chain.filter((name) => name.length === 1);
const line = fc.oneof(
  { weight: 4, arbitrary: own.map((name) => `:${name} - [0:0]`) },
  { weight: 5, arbitrary: fc.tuple(chain, rule).map(([name, text]) => `-A ${name} ${text}`) },
  // Only at 1: iptables-nft 1.8.9 still counts the rules of a chain that it flushes; the fake is stricter.
  { weight: 1, arbitrary: fc.tuple(chain, rule).map(([name, text]) => `-I ${name} 1 ${text}`) },
  { weight: 2, arbitrary: fc.tuple(chain, rule).map(([name, text]) => `-D ${name} ${text}`) },
  { weight: 1, arbitrary: chain.map((name) => `-F ${name}`) },
  { weight: 1, arbitrary: own.map((name) => `-X ${name}`) },
);
const payload = fc
  .array(line, { minLength: 1, maxLength: 8 })
  .map((text) => ["*nat", ...text, "COMMIT", ""].join("\n"));
const history = fc.array(payload, { minLength: 2, maxLength: 6 });

/** A jump to a chain that may not be there, but for the line that flushes it. */
const FLUSHED_LATER = ["*nat\n:C - [0:0]\n-A C -j MASQUERADE\nCOMMIT\n", "*nat\n-A OUTPUT -g C\n:C - [0:0]\nCOMMIT\n"];

/**
 * Whether a restore was taken (the case table has the lines that are blamed), and what is there afterwards, in text.
 */
async function after(client: IptablesClient, text: string): Promise<string> {
  const outcome = await client.restore(text).then(
    () => "taken",
    (error: unknown) => (error instanceof IptablesError ? error.kind : String(error)),
  );
  return `${outcome}\n${[...renderRuleSet(new Map([["nat", await client.save("nat")]]))].join("")}`;
}

kernelSuite("the fake does what the kernel does", () => {
  test("any commands, nft", async () => {
    await using namespace = await createNamespace();
    const runner = createRunner({ prefix: namespace.argvPrefix, env: namespace.env });
    const real = await openIptables(runner, { family: "IPv4", variant: "nft" });
    await fc.assert(
      fc.asyncProperty(history, async (payloads) => {
        await runner.run(["iptables-nft-restore", "-w", "5"], { input: "*nat\nCOMMIT\n" });
        const fake = new FakeIptables({ family: "IPv4", variant: "nft" });
        for (const text of payloads) expect(await after(fake, text), text).toBe(await after(real, text));
      }),
      { numRuns: runs(25), examples: [[FLUSHED_LATER]] },
    );
  });
});
