import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { NetworkNamespace } from "@fairlead/kernel/netns";
import type { RawObject } from "@fairlead/testkit";
import { execa } from "execa";

/** An API server for the proxies of one namespace. */
export interface NamespaceApi {
  readonly url: string;
  put(objects: readonly RawObject[]): Promise<void>;
  stop(): Promise<void>;
}

const SCRIPT = fileURLToPath(new URL("api-main.ts", import.meta.url));

/** Starts it with these objects. */
export async function startApi(namespace: NetworkNamespace, objects: readonly RawObject[]): Promise<NamespaceApi> {
  const [program = "nsenter", ...prefix] = namespace.argvPrefix;
  const child = execa(
    program,
    [...prefix, process.execPath, "--conditions=@fairlead/source", "--no-warnings", SCRIPT],
    { stdin: "pipe", stderr: "inherit", buffer: false, reject: false },
  );
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const next = async () => {
    const { value, done } = await lines.next();
    if (done === true) throw new Error("the light API server ended");
    return value;
  };
  const url = await next();
  const put = async (more: readonly RawObject[]) => {
    child.stdin.write(`${JSON.stringify(more)}\n`);
    await next();
  };
  await put(objects);
  return {
    url,
    put,
    stop: async () => {
      child.kill();
      await child;
    },
  };
}
