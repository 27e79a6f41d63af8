import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { type Lab, namespaceOf } from "@fairlead/lab/plain/lab";
import type { Host } from "@fairlead/testkit";
import { execa } from "execa";

interface TransferEnd {
  readonly answers: number;
  /** Everybody who answered. */
  readonly servers: readonly string[];
  /** `none`, or what cut the connection. */
  readonly error: string;
}

/** A transfer that has begun. */
export interface Transfer {
  end(): Promise<TransferEnd>;
}

const SCRIPT = fileURLToPath(new URL("transfer-main.ts", import.meta.url));

/** Begins a long transfer over one TCP connection. */
export async function beginTransfer(lab: Lab, from: Host, to: string, port: number): Promise<Transfer> {
  const [program = "nsenter", ...prefix] = lab.namespace(namespaceOf(from)).argvPrefix;
  const args = [...prefix, process.execPath, "--no-warnings", SCRIPT, to, String(port)];
  const child = execa(program, args, { stdin: "pipe", buffer: false, reject: false });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const next = async () => String((await lines.next()).value);
  const first = await next();
  if (first !== "begun") throw new Error(`the transfer did not begin: ${first}`);
  return {
    end: async () => {
      child.stdin.end();
      const end: TransferEnd = JSON.parse(await next());
      await child;
      return end;
    },
  };
}
