import type { LightApiServer } from "@fairlead/testkit/api-server";
import { expect, test } from "vitest";
import type { RequestObserver } from "../src/index.ts";
import { endAfterEach, following, SERVICES_PATH, service } from "./support/run.ts";

endAfterEach();

test("requests are told with method, host and status code, and how long each waited for its turn", async () => {
  const answered: string[] = [];
  let waited = 0;
  const onRequest: RequestObserver = {
    answered({ method, host, code, watch }) {
      expect(host).toMatch(/^127\.0\.0\.1:\d+$/);
      answered.push(`${method} ${code} ${watch ? "watch" : "list"}`);
    },
    waited: () => waited++,
  };
  const prepare = (fake: LightApiServer) => {
    fake.watchList = false;
    fake.store.put(SERVICES_PATH, service("a"));
  };
  await following(prepare, { onRequest });
  // The watch that follows may not have its answer yet.
  expect(answered.slice(0, 2)).toEqual(["GET 422 watch", "GET 200 list"]);
  expect(waited).toBeGreaterThanOrEqual(2);
});

test("a request without an answer has no code", async () => {
  const codes: (number | undefined)[] = [];
  const onRequest: RequestObserver = { answered: ({ code }) => codes.push(code), waited: () => {} };
  await following(
    (fake) => {
      let first = true;
      fake.intercept((_request, response) => {
        if (!first) return false;
        first = false;
        response.destroy();
        return true;
      });
    },
    { onRequest },
  );
  expect(codes[0]).toBeUndefined();
  expect(codes).toContain(200);
});
