import { webState } from "@fairlead/testkit/histories";
import { expect, test, vi } from "vitest";
import { live } from "./support/live.ts";

/** Reads what it is given, writes nothing and says that all went well. */
async function lie(payload: Iterable<string> | AsyncIterable<string>): Promise<void> {
  for await (const _ of payload);
}

test.each([
  ["a service that comes", [[2, webState()]], "virtual server -t 10.96.3.2:80: .* but it does not exist"],
  ["one that goes", [[1, undefined]], "virtual server -t 10.96.3.1:80: .* but it still exists"],
  [
    "an endpoint that comes",
    [[1, webState({ endpoints: ["ready", "ready", "ready", "none"] })]],
    "virtual server -t 10.96.3.1:80: .* but it lacks the destination 10.144.",
  ],
] as const)("virtual servers: %s, and was not written, is an error at once", async (_, change, error) => {
  const made = await live([[[1, webState({ endpoints: ["ready", "none", "none", "none"] })]]]);
  const lying = vi.spyOn(made.node.servers, "change").mockResolvedValue();
  await expect(made.change(change)).rejects.toThrow(new RegExp(error));
  lying.mockRestore();
  await made.sync();
  expect(await made.differences()).toEqual([]);
});

test("rules that a new kind of service needs: the next check finds that they are missing", async () => {
  const made = await live([[[1, webState()]]]);
  const lying = vi.spyOn(made.node.rules.IPv4, "restore").mockImplementation(lie);
  await made.change([[2, webState({ type: "NodePort" })]]);
  lying.mockRestore();
  expect(await made.backend.difference(made.world.plan)).toBeDefined();
  await made.sync();
  expect(await made.differences()).toEqual([]);
});
