import { FakeIptables } from "@fairlead/kernel/fake";
import { expect, test } from "vitest";
import { createIptablesBackend, type RulesPort } from "../src/index.ts";
import { clusterIPGroup, endpoints, nodePlan, planOf } from "./support/groups.ts";

/** Calls of the kernel's tools by name. */
function counting(port: FakeIptables): { readonly port: RulesPort; readonly calls: string[] } {
  const calls: string[] = [];
  const handler: ProxyHandler<FakeIptables> = {
    get(target, key) {
      const member: unknown = Reflect.get(target, key, target);
      if (typeof member !== "function") return member;
      return (...args: readonly unknown[]) => {
        calls.push(String(key));
        return Reflect.apply(member, target, args);
      };
    },
  };
  return { port: new Proxy(port, handler), calls };
}

test("a look starts a process for each table, a repair of rules that no service has one more, whatever the services", async () => {
  for (const services of [1, 200]) {
    const kernel = new FakeIptables({ family: "IPv4" });
    const { port, calls } = counting(kernel);
    const problems: string[] = [];
    const backend = createIptablesBackend(port, { onProblem: (problem) => problems.push(problem) });
    const many = planOf(
      Array.from({ length: services }, (_, i) => clusterIPGroup(`s${i}`, `10.96.1.${i}`, endpoints(1, { from: i }))),
      nodePlan(),
    );
    await backend.sync(many);
    calls.length = 0;
    expect(await backend.difference(many)).toBeUndefined();
    expect(calls).toEqual(["texts", "texts", "texts"]);
    await kernel.meddle("*nat\n-F KUBE-POSTROUTING\n-F KUBE-MARK-MASQ\nCOMMIT\n");
    calls.length = 0;
    expect(await backend.difference(many)).toBeUndefined();
    expect(calls).toEqual(["texts", "texts", "texts", "restore"]);
    expect(problems).toEqual([
      "another program changed KUBE-POSTROUTING, KUBE-MARK-MASQ in the nat table of IPv4; restored",
    ]);
    expect(await port.list("nat", "KUBE-POSTROUTING")).toHaveLength(3);
  }
});
