import { type Lab, type LabOptions, openLab } from "@fairlead/lab/plain/lab";
import { afterAll, afterEach, beforeAll, beforeEach } from "vitest";

/**
 * A ground for the tests of a describe, there from before the first of them to behind the last. In tests and in hooks
 * that are declared after it.
 *
 * @param needs looked after before it is opened
 */
export function labFor(options: LabOptions, ...needs: readonly (() => Promise<void>)[]): Lab {
  return declared(beforeAll, afterAll, options, needs);
}

/** The same, a new one for each test. */
export function labForEach(options: LabOptions, ...needs: readonly (() => Promise<void>)[]): Lab {
  return declared(beforeEach, afterEach, options, needs);
}

type Hook = (act: () => Promise<void>) => void;

function declared(before: Hook, after: Hook, options: LabOptions, needs: readonly (() => Promise<void>)[]): Lab {
  let current: Lab | undefined;
  const lab = () => {
    if (current === undefined) throw new Error("the lab is not open yet: it is there in tests and hooks");
    return current;
  };
  const dispose = async () => {
    await current?.dispose();
    current = undefined;
  };
  before(async () => {
    await Promise.all(needs.map((need) => need()));
    current = await openLab(options);
  });
  after(dispose);
  return {
    get namespaces() {
      return lab().namespaces;
    },
    namespace: (name) => lab().namespace(name),
    runner: (name) => lab().runner(name),
    peer: (host) => lab().peer(host),
    dispose,
    [Symbol.asyncDispose]: dispose,
  };
}
