import { fileURLToPath } from "node:url";
import { socketText } from "@fairlead/base";
import { PATIENCE_MS } from "@fairlead/base/testing";
import type { Host } from "@fairlead/testkit";
import { waitUntil } from "../agent/wait-until.ts";
import { startScript } from "../peer/script.ts";
import type { Lab } from "../two-nodes/lab.ts";
import { namespaceOf } from "../two-nodes/topology.ts";

const SCRIPT = fileURLToPath(new URL("held-main.ts", import.meta.url));

/** A TCP connection that its client keeps. */
export interface HeldConnection extends AsyncDisposable {
  /** Sends a request on it. */
  ask(): void;
  /** Who answered, or the code of the error that ended it. */
  outcome(): Promise<string>;
  /** Waits until the kernel has sent something once more, since nothing acknowledged it. */
  retransmitted(): Promise<void>;
}

/** Makes a connection, which is there when the first request on it has been answered. */
export function hold(lab: Lab, from: Host, to: string, port: number): HeldConnection {
  const namespace = namespaceOf(from);
  const script = startScript(lab.namespace(namespace), SCRIPT, [to, String(port)]);
  return {
    ask: () => script.notify("ask"),
    outcome: () => script.hear(),
    retransmitted: async () => {
      await waitUntil(`a retransmission to ${to}`, PATIENCE_MS, async () => {
        const { stdout } = await lab.runner(namespace).run(["ss", "-Htni", "dst", socketText(to, port)]);
        return / retrans:[1-9]/.test(stdout) ? true : undefined;
      });
    },
    [Symbol.asyncDispose]: () => script.end(),
  };
}

/** From now on a pod gets no packet, as if its node had lost power, until what this returns is disposed of. */
export async function vanish(lab: Lab, pod: Host): Promise<AsyncDisposable> {
  const each = (action: "-I" | "-D") =>
    Promise.all(
      ["iptables", "ip6tables"].map((tool) => lab.runner(namespaceOf(pod)).run([tool, action, "INPUT", "-j", "DROP"])),
    );
  await each("-I");
  const stack = new AsyncDisposableStack();
  stack.defer(async () => void (await each("-D")));
  return stack;
}
